package proxy

import (
	"cmp"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/logthrottle"
	"github.com/limitgate/limitgate/limit"
)

const (
	// sampledQuiet is the shortest time between two lines about the same mistake.
	sampledQuiet = time.Hour
	// sampledNames and sampledOps bound the names of dimensions, the ops and the mistakes that are remembered:
	// further ones are not compared, as a client may send any.
	sampledNames = 256
	sampledOps   = 1024
	// sampledLines is how many names of dimensions, and how many spellings of ops, have a line in sampledQuiet.
	sampledLines = 8
	// sampledNameBytes and sampledUsed bound the name of a dimension that is compared, and the names that limits use:
	// 16 comparisons may be part of a decision, and BenchmarkNearUsed has the time of each.
	sampledNameBytes = 32
	sampledUsed      = 64
	// sampledUses bounds the conditions on the op that an op is compared with.
	sampledUses = 256
)

// The lines about mistakes of clients.
const (
	swappedLine    = commands.SwappedText + ", and these requests share the limits of a tenant of that name"
	addressLine    = commands.AddressAsOpText
	absentLine     = "requests have a word for a missing value: their callers share the buckets of that word; leave out a dimension without a value, and write - for no op"
	unheldLine     = "slots are acquired for a tenant without a limit of algorithm concurrency: nothing bounds how many it holds"
	unmetSlotLine  = "slots are acquired by requests that no limit of algorithm concurrency is for: nothing bounds how many are held"
	nearSlotLine   = "slots are acquired for an op that is nearly the one of a limit of algorithm concurrency, which is not for it: nothing bounds how many are held"
	spelledLine    = "requests have an op that is another spelling of one in the limits, which take it for another: both have to spell it alike"
	manyOpsLine    = "limits count by op, and requests have very many ops, with a bucket each: send the template of a route, such as GET /users/{id}, and not its paths"
	undeclaredLine = "requests have a value that the dimensions of the limits file do not declare: limits take it for a missing one"
	unsentLine     = "a limit needs a dimension that none of the requests which it is for has: services send DIM with its name and value"
	unslottedLine  = "a limit counts slots, and none of the requests which it is for takes one: only RL.ACQUIRE does, and RL.CHECK passes the limit over"
	lackingLine    = "no request of a plan meets a limit: all its limits need a dimension that requests lack"
	slotlessLine   = "no request of a plan meets a limit: its limits count slots, which only RL.ACQUIRE takes"
	otherCaseLine  = "requests are for a tenant that is not listed, and has the name of a listed one but for capitals or blanks: it has not the limits of that one"
	valueLine      = "requests have a value of a dimension that is another spelling of the one in the condition of a limit, which is not for them: both have to spell it alike"
	unknownLine    = "requests have a dimension that no limit uses: a limit uses one of nearly that name"
)

// sampledRequests looks for requests that a client sends by mistake, and that are valid.
type sampledRequests struct {
	limits func() *limit.Set
	// partial reports that the limits may not list a tenant that the table has.
	partial bool
	log     *slog.Logger
	// These bound the lines about each kind of mistake.
	swapped, address, unknown, undeclared, spelled, manyOps, absent, unheld, unmetSlot, nearSlot, lacking, slotless, otherCase, unsent, unslotted, value logthrottle.Throttle

	mu     sync.Mutex // guards the fields below
	set    *limit.Set // the limits that dims, uses and ops belong to
	dims   map[string]string
	uses   map[string][]limit.OpUse // by plan
	ops    map[planOp]limit.OpSpelling
	slots  map[string]*planSlots            // by plan
	valued map[string][]*limit.Limit        // those with conditions on dimensions, by plan
	opsOf  map[string]int                   // the number of ops, by plan
	needs  map[string]*planNeeds            // by plan
	lines  map[lineOf]*logthrottle.Throttle // they outlive a set
	// slotted has the plans whose requests take slots. It outlives a set: a slot may be taken seldom.
	slotted map[string]bool
	// slotLooks and valueLooks, by plan, outlive a set, too.
	slotLooks, valueLooks map[string]*lookBudget
}

// lineOf is a mistake of a kind.
type lineOf struct {
	kind    *logthrottle.Throttle
	mistake string
}

// planOp is an op of tenants of a plan.
type planOp struct{ plan, op string }

func newSampledRequests(limits func() *limit.Set, partial bool, log *slog.Logger) *sampledRequests {
	few := func(lines int) logthrottle.Throttle {
		return logthrottle.Throttle{Period: sampledQuiet, Lines: lines}
	}
	return &sampledRequests{
		limits: limits, partial: partial, log: log, swapped: few(1), address: few(1), manyOps: few(1), unknown: few(sampledLines), spelled: few(sampledLines), absent: few(1), unheld: few(1), unmetSlot: few(1), nearSlot: few(sampledLines), undeclared: few(sampledLines), lacking: few(1), slotless: few(1), unsent: few(sampledLines), unslotted: few(sampledLines), otherCase: few(sampledLines), value: few(sampledLines),
		lines: map[lineOf]*logthrottle.Throttle{}, slotted: map[string]bool{}, slotLooks: map[string]*lookBudget{}, valueLooks: map[string]*lookBudget{},
	}
}

// look logs the mistakes of a request, each at most once an hour. It is safe for concurrent use.
func (s *sampledRequests) look(req *limit.Request) {
	set := s.limits()
	if commands.Swapped(req) && s.swapped.Allow() {
		var of []any // addresses and secrets may be in the route, and in an op that is no tenant
		if set.Lists(req.Op) {
			of = []any{"op", req.Op}
		}
		s.log.Warn(swappedLine, of...)
	}
	if commands.AddressAsOp(req) && s.address.Allow() {
		var of []any // the tenant may be an address too
		if set.Lists(req.Tenant) {
			of = []any{"tenant", req.Tenant}
		}
		s.log.Warn(addressLine, of...)
	}
	if name, value := absentValue(req); name != "" && !set.Lists(value) && s.absent.Allow() {
		s.log.Warn(absentLine, "dimension", name, "value", value)
	}
	if req.Hold == limit.HoldSlot {
		s.lookAtSlot(set, req)
	}
	if listed := set.ListedInSmall(req.Tenant); listed != "" && !s.partial && s.mayLog(&s.otherCase, listed) {
		s.log.Warn(otherCaseLine, "tenant", limit.Shorten(req.Tenant), "listed", listed)
	}
	if of := s.lackingOf(set, req); of.Dim != "" && s.lacking.Allow() {
		s.log.Warn(lackingLine, "plan", cmp.Or(set.Plan(req.Tenant), "none"), "dimension", of.Dim, "limit", of.Limit.ID)
	} else if of.Limit != nil && of.Dim == "" && s.slotless.Allow() {
		s.log.Warn(slotlessLine, "plan", cmp.Or(set.Plan(req.Tenant), "none"), "limit", of.Limit.ID)
	}
	for _, of := range s.unsentOf(set, req) {
		if of.Dim == "" && s.mayLog(&s.unslotted, of.Limit.ID) {
			s.log.Warn(unslottedLine, "limit", of.Limit.ID, "plan", of.Limit.Plan, "requests", unsentRequests)
		} else if of.Dim != "" && s.mayLog(&s.unsent, of.Dim) {
			s.log.Warn(unsentLine, "dimension", of.Dim, "limit", of.Limit.ID, "plan", of.Limit.Plan, "requests", unsentRequests)
		}
	}
	s.lookAtOp(set, req)
	s.lookAtValues(set, req)
	for name := range set.Undeclared(req) {
		if s.mayLog(&s.undeclared, name) {
			s.log.Warn(undeclaredLine, "dimension", name, "declared", strings.Join(set.Declared(name), ","))
		}
	}
	for i := range req.Dims {
		name := req.Dims[i].Name
		near := s.nearDim(set, name)
		if near == "" {
			continue
		}
		has := slices.ContainsFunc(req.Dims, func(d limit.Dim) bool { return d.Name == near })
		if !has && s.mayLog(&s.unknown, name) {
			s.log.Warn(unknownLine, "dimension", name, "used", near)
		}
	}
}

// lookAtOp logs that the op of a request is spelled in another way than limits have it, and that there are very many ops. Secrets may
// be in the op.
func (s *sampledRequests) lookAtOp(set *limit.Set, req *limit.Request) {
	of, tooMany := s.spelling(set, req)
	if tooMany && s.manyOps.Allow() {
		s.log.Warn(manyOpsLine, "plan", cmp.Or(set.Plan(req.Tenant), "none"), "ops", "more than "+strconv.Itoa(sampledOps/2))
	}
	if of.Reason == "" {
		return
	}
	attrs := []any{"reason", of.Reason, "condition", of.Condition}
	if of.Condition == "" { // limits count by op
		attrs = []any{"reason", of.Reason, "plan", cmp.Or(set.Plan(req.Tenant), "none"), "advice", "limitgate top shows the ops of requests"}
	}
	if s.mayLog(&s.spelled, of.Condition+": "+of.Reason) { // one line for all ops without a condition: a client may have any number of them
		s.log.Warn(spelledLine, attrs...)
	}
}

// mayLog reports whether a mistake may have a line, and counts it if so.
func (s *sampledRequests) mayLog(kind *logthrottle.Throttle, mistake string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := lineOf{kind, mistake}
	t := s.lines[of]
	if t == nil {
		if kind.Used() {
			return false
		}
		if len(s.lines) == sampledNames {
			clear(s.lines) // the kind bounds the lines
		}
		of.mistake = strings.Clone(mistake) // it may alias a command
		t = &logthrottle.Throttle{Period: sampledQuiet}
		s.lines[of] = t
	}
	return t.Allow() && kind.Allow()
}

// absentValues are the texts that languages make of a value that is missing.
var absentValues = map[string]bool{"undefined": true, "null": true, "None": true, "nil": true, "<nil>": true, "NaN": true, "[object Object]": true}

// absentValue returns the tenant, the op or the dimension of a request whose value is a word for a missing one.
func absentValue(req *limit.Request) (name, value string) {
	switch {
	case absentValues[req.Tenant]:
		return "tenant", req.Tenant
	case absentValues[req.Op]:
		return "op", req.Op
	}
	for _, d := range req.Dims {
		if absentValues[d.Value] {
			return d.Name, d.Value
		}
	}
	return "", ""
}

// use prepares the memory for a set. The caller holds mu.
func (s *sampledRequests) use(set *limit.Set) {
	if s.set != set {
		s.set, s.dims, s.uses, s.ops = set, map[string]string{}, map[string][]limit.OpUse{}, map[planOp]limit.OpSpelling{}
		s.opsOf, s.needs, s.valued, s.slots = map[string]int{}, map[string]*planNeeds{}, map[string][]*limit.Limit{}, map[string]*planSlots{}
	}
}

// nearDim returns the dimension that a name means, or "", also if another decision compares at the moment: none waits.
func (s *sampledRequests) nearDim(set *limit.Set, name string) string {
	if !s.mu.TryLock() {
		return ""
	}
	defer s.mu.Unlock()
	s.use(set)
	near, known := s.dims[name]
	if !known && len(s.dims) < sampledNames {
		near = nearUsed(set, name)
		s.dims[strings.Clone(name)] = near
	}
	return near
}

// spelling returns how the op of a request differs from one that limits of its tenant use, or none, also if another
// decision compares at the moment. TooMany reports that there are more ops than are remembered, most of them
// of the request's plan, and that its limits count by op.
func (s *sampledRequests) spelling(set *limit.Set, req *limit.Request) (of limit.OpSpelling, tooMany bool) {
	key := planOp{set.Plan(req.Tenant), req.Op}
	if !s.mu.TryLock() {
		return of, false
	}
	defer s.mu.Unlock()
	s.use(set)
	of, known := s.ops[key]
	if known {
		return of, false
	}
	if len(s.ops) == sampledOps {
		return of, s.opsOf[key.plan] > sampledOps/2 && slices.ContainsFunc(s.uses[key.plan], func(use limit.OpUse) bool { return use.Counts })
	}
	uses, known := s.uses[key.plan]
	if !known {
		uses = opUses(set.TenantLimits(req.Tenant))
		s.uses[key.plan] = uses
	}
	if len(uses) > 0 {
		of, _ = limit.SpellingOf(req.Op, uses)
		key.op = strings.Clone(key.op)
		s.ops[key] = of
		s.opsOf[key.plan]++
	}
	return of, false
}

// opUses returns the uses that limits make of the op, each once.
func opUses(limits []*limit.Limit) (uses []limit.OpUse) {
	for _, l := range limits {
		if use := l.OpUse(); use != (limit.OpUse{}) && len(uses) < sampledUses && !slices.Contains(uses, use) {
			uses = append(uses, use)
		}
	}
	return uses
}

// nearUsed returns the name, of the dimensions that limits use, that is near to one that they do not use, or "".
func nearUsed(set *limit.Set, name string) string {
	used := set.Dims()
	if _, found := slices.BinarySearch(used, name); found || len(name) > sampledNameBytes {
		return ""
	}
	return limit.Nearest(name, used[:min(len(used), sampledUsed)])
}
