package proxy

import (
	"log/slog"
	"slices"
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
	// sampledNames bounds the names of dimensions, and the ops, that are remembered: further ones are not
	// compared, as a client may send any.
	sampledNames = 1024
	// sampledLines is how many names of dimensions, and how many ops, have a line in sampledQuiet.
	sampledLines = 8
)

const swappedLine = commands.SwappedText + ", and these requests share the limits of a tenant of that name"

// sampledRequests looks for requests that a client sends by mistake, and that are valid.
type sampledRequests struct {
	limits func() *limit.Set
	log    *slog.Logger
	// These bound the lines about each kind of mistake.
	swapped, unknown, spelled, absent, unheld logthrottle.Throttle

	mu   sync.Mutex           // guards the fields below
	set  *limit.Set           // the limits of the others
	uses []limit.OpUse        // of the op, each once
	dims map[string]*nearName // by the name of a dimension
	ops  map[string]*nearName // by an op
}

// nearName is a name that limits use and that is near to one that they do not use, or "".
type nearName struct {
	name  string
	lines logthrottle.Throttle
}

func newSampledRequests(limits func() *limit.Set, log *slog.Logger) *sampledRequests {
	return &sampledRequests{limits: limits, log: log, swapped: logthrottle.Throttle{Period: sampledQuiet}, unknown: logthrottle.Throttle{Period: sampledQuiet, Lines: sampledLines}, spelled: logthrottle.Throttle{Period: sampledQuiet, Lines: sampledLines}, absent: logthrottle.Throttle{Period: sampledQuiet}, unheld: logthrottle.Throttle{Period: sampledQuiet}}
}

// look logs the mistakes of a request, each at most once an hour. It is safe for concurrent use.
func (s *sampledRequests) look(req *limit.Request) {
	set := s.limits()
	if commands.Swapped(req) && s.swapped.Allow() {
		s.log.Warn(swappedLine, "tenant", routeOf(req.Tenant)) // addresses and secrets may be in a path
	}
	if name, value := absentValue(req); name != "" && !set.Lists(value) && s.absent.Allow() {
		s.log.Warn("requests have a word for a missing value: their callers share the buckets of that word; leave out a dimension without a value, and write - for no op", "dimension", name, "value", value)
	}
	if req.Hold == limit.HoldSlot && !set.HoldsSlots(req.Tenant) && s.unheld.Allow() {
		s.log.Warn("slots are acquired for a tenant without a limit of algorithm concurrency: nothing bounds how many it holds", "tenant", req.Tenant, "plan", set.Plan(req.Tenant))
	}
	op, dims := s.meantBy(set, req)
	if op != nil && op.name != "" && op.lines.Allow() && s.spelled.Allow() {
		s.log.Warn("limits take the op of requests for another one than is meant: "+limit.OpAdvice, "op", shownOp(req.Op), "meant", routeOf(op.name))
	}
	for i, near := range dims {
		name := req.Dims[i].Name
		if near == nil || near.name == "" {
			continue
		}
		has := slices.ContainsFunc(req.Dims, func(d limit.Dim) bool { return d.Name == near.name })
		if !has && near.lines.Allow() && s.unknown.Allow() {
			s.log.Warn("requests have a dimension that no limit uses: a limit uses one of nearly that name", "dimension", name, "used", near.name)
		}
	}
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

// meantBy returns the op and the dimensions that those of a request mean, nil for each that is not compared.
func (s *sampledRequests) meantBy(set *limit.Set, req *limit.Request) (op *nearName, dims []*nearName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set != set {
		s.set, s.uses, s.dims, s.ops = set, opUses(set), map[string]*nearName{}, map[string]*nearName{}
	}
	op = nearBy(s.ops, req.Op, func() string { return limit.MeantOp(req.Op, s.uses) })
	for _, d := range req.Dims {
		dims = append(dims, nearBy(s.dims, d.Name, func() string { return nearUsed(set, d.Name) }))
	}
	return op, dims
}

// nearBy returns what is remembered of a name, or remembers what find returns, or returns nil if there are too many.
func nearBy(known map[string]*nearName, name string, find func() string) *nearName {
	near, found := known[name]
	if !found && len(known) < sampledNames {
		near = &nearName{name: find(), lines: logthrottle.Throttle{Period: sampledQuiet}}
		known[strings.Clone(name)] = near // it may alias a command
	}
	return near
}

// shownOp returns an op for the log, without the numbers in its path and without its query: addresses and secrets
// may be there.
func shownOp(op string) string {
	if strings.Contains(op, "?") {
		return routeOf(op) + "?..."
	}
	return routeOf(op)
}

// opUses returns the uses that limits make of the op.
func opUses(set *limit.Set) (uses []limit.OpUse) {
	seen := map[limit.OpUse]bool{{}: true}
	for _, l := range set.Limits {
		if use := l.OpUse(); !seen[use] && l.Mode != limit.ModeOff {
			seen[use] = true
			uses = append(uses, use)
		}
	}
	return uses
}

// nearUsed returns the name, of the dimensions that limits use, that is near to one that they do not use, or "".
func nearUsed(set *limit.Set, name string) string {
	var used []string
	for _, l := range set.Limits {
		for _, chain := range l.Level() {
			used = append(used, strings.Split(chain, "|")...)
		}
		for _, c := range l.Clauses() {
			used = append(used, c.Dim)
		}
	}
	if slices.Contains(used, name) {
		return ""
	}
	return limit.Nearest(name, slices.DeleteFunc(used, limit.ReservedDim))
}
