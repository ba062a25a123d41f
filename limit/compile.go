package limit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// DefaultMaxLevels is how many enforced limits may apply to one request unless the file
// sets another number. Each limit costs the store work.
const DefaultMaxLevels = 8

// CompileOptions are the settings that a limits file is checked against.
type CompileOptions struct {
	// Version becomes Set.Version.
	Version string
	// IPMaxTTL is the longest a key that holds a hashed address may live, in
	// microseconds.
	IPMaxTTL int64
	// Prefixes tell clients apart where a share of a limit's buckets is enforced.
	Prefixes Prefixes
	// Strict also demands on_error on every limit, and IPSecret if a limit
	// counts addresses.
	Strict bool
	// IPSecret reports that addresses are hashed with a secret from a file.
	IPSecret bool
	// IDs are the Set.IDs of the set beside which this one is tried; nil without a trial.
	IDs []string
	// Cells divides each limit among cells, unless it is nil.
	Cells *Cells
	// Pause is called regularly while many tenants are compiled, unless it is nil.
	Pause func()
}

// Compile turns a document into a set. The error, a *Problems, lists every mistake.
// Warnings are valid settings that are seldom intended.
func Compile(doc *Document, opts CompileOptions) (set *Set, warnings []Problem, err error) {
	c := &compiler{
		doc: doc, opts: opts,
		set: &Set{
			Version: opts.Version, File: doc.File,
			byPlan: map[string]*ruleset{},
		},
		plans: map[string]*plan{}, tenants: map[string]*ruleset{}, ordinals: map[string]int{}, mistakes: map[entry][]Problem{}, lift: map[*Limit]map[[2]string]bool{}, maxLevels: DefaultMaxLevels,
	}
	for _, id := range opts.IDs {
		c.ordinal(id)
	}
	c.compile()
	byLine := func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) }
	slices.SortStableFunc(c.problems, byLine)
	slices.SortStableFunc(c.warnings, byLine)
	c.problems, c.warnings = distinct(c.problems), distinct(c.warnings)
	if len(c.problems) > 0 {
		return nil, c.warnings, &Problems{File: doc.File, List: c.problems}
	}
	return c.set, c.warnings, nil
}

// distinct returns problems without those that are there already: plans may share limits.
func distinct(problems []Problem) []Problem {
	seen := make(map[Problem]bool, len(problems))
	return slices.DeleteFunc(problems, func(p Problem) bool {
		was := seen[p]
		seen[p] = true
		return was
	})
}

// compiler holds the state and the results of Compile.
type compiler struct {
	doc  *Document
	opts CompileOptions
	set  *Set

	maxLevels  int
	meetings   meetings
	mistakes   map[entry][]Problem        // of plans' and shared limits
	dimensions map[string]map[string]bool // declared values, nil when the file declares none
	hashed     map[string]bool            // by dimension: whether its values are hashed, where the file says so
	plans      map[string]*plan
	// meantDefault is the default plan, or one with nearly its name if there is none; "" for none.
	meantDefault string
	tenants      map[string]*ruleset
	shared       []*Limit
	limits       []*Limit                      // of all tenants
	overridden   map[[2]string]bool            // nil before the first call of overriddenLimits
	allowing     []*Limit                      // nil before the first call of allows
	notedGroup   bool                          // an allow of another group has its note
	lift         map[*Limit]map[[2]string]bool // of liftedConditions
	placesSought int                           // the texts whose time zone was sought
	ordinals     map[string]int
	tied         map[entry]bool // limits already reported as ties with an earlier one
	// reportedLevels are the numbers of limits, more than maxLevels, that were reported of each plan.
	reportedLevels map[string]int
	// lifted are the pairs of limits of which warnLifted has warned, and comparedOverrides how many it
	// has compared.
	lifted            map[[3]string]*lifting
	comparedOverrides int

	undecided        []*Limit // without on_error, of the strict rules
	undecidedEntries map[entry]bool

	problems, warnings []Problem
}

type plan struct {
	spec   *PlanSpec
	limits []*Limit
	specs  map[string]*RuleSpec
}

func (c *compiler) fail(line int, field, format string, args ...any) {
	c.problems = append(c.problems, Problem{Line: line, Field: field, Text: fmt.Sprintf(format, args...)})
}

func (c *compiler) warn(line int, field, format string, args ...any) {
	c.warnings = append(c.warnings, Problem{Line: line, Field: field, Text: fmt.Sprintf(format, args...)})
}

// note adds a warning about what may well be meant.
func (c *compiler) note(line int, field, format string, args ...any) {
	c.warn(line, field, format, args...)
	c.warnings[len(c.warnings)-1].Note = true
}

func (c *compiler) compile() {
	c.compileHead()
	c.compileDimensions()
	for i := range c.doc.Plans {
		c.compilePlan(&c.doc.Plans[i])
	}
	for i := range c.doc.Shared {
		if l := c.compileLimit(&c.doc.Shared[i], "", layerShared); l != nil {
			c.shared = append(c.shared, l)
		}
	}
	c.checkIDs()
	c.checkReplaces()
	c.compileRulesets()
	c.checkDefaults()
	if len(c.set.Limits) == 0 && len(c.problems) == 0 && !c.doc.Misread {
		c.warn(1, "", "there is no limit: every request is admitted")
	}
	c.set.dims = c.usedDims()
}

func (c *compiler) compileHead() {
	switch v := c.doc.Version; {
	case !v.Set():
		c.fail(1, "version", "the file does not say which format it is in: write version: 1")
	case v.Value != "1":
		c.fail(v.Line, "version", "this release reads version 1 of the format, not %s: write version: 1", Quote(v.Value))
	}
	if m := c.doc.MaxLevels; m.Set() {
		n, err := strconv.Atoi(m.Value)
		if err != nil || n < 1 || n > 64 {
			c.fail(m.Line, "max_levels", "%s is not a number of limits: write a whole number from 1 to 64", Quote(m.Value))
			return
		}
		c.maxLevels = n
	}
}

// maxFieldValues bounds the buckets that one limit may have in a tenant's string: a string
// is read, and expires, as a whole.
const maxFieldValues = 1000

func (c *compiler) compileDimensions() {
	for _, spec := range c.doc.Dimensions {
		if c.dimensions == nil {
			c.dimensions = map[string]map[string]bool{}
		}
		if spec.Name.Value == "tenant" || spec.Name.Value == "ip" {
			c.fail(spec.Name.Line, "dimensions."+spec.Name.Value, "it is always there and needs no declaration: remove it")
			continue
		}
		c.checkDimensionName(spec.Name, "dimensions")
		if len(spec.Values) > maxFieldValues {
			c.fail(spec.Name.Line, "dimensions."+spec.Name.Value, "%d values are too many to declare: at most %d, or leave values out", len(spec.Values), maxFieldValues)
		}
		var values map[string]bool
		for _, v := range spec.Values {
			if values == nil {
				values = map[string]bool{}
			}
			values[v.Value] = true
			c.warnDeclared(spec.Name, v, len(spec.Values) == 1)
		}
		c.dimensions[spec.Name.Value] = values
		c.compileHash(&spec)
	}
	c.set.declared = c.dimensions
}

// usedDims returns the dimensions that limits count by or have conditions on, as Set.Dims has them.
func (c *compiler) usedDims() []string {
	used := map[string]bool{}
	for _, l := range c.limits {
		for _, d := range l.by {
			for i := range d.choices {
				used[d.choices[i].name] = true
			}
		}
		for i := range l.when {
			used[l.when[i].name] = true
		}
	}
	return slices.DeleteFunc(keys(used), ReservedDim)
}

func (c *compiler) compilePlan(spec *PlanSpec) {
	if err := CheckName(spec.Name.Value); err != nil {
		c.fail(spec.Name.Line, "plans", "%s cannot be a plan's name: %s", Quote(spec.Name.Value), err)
	}
	p := &plan{spec: spec, specs: map[string]*RuleSpec{}}
	c.plans[spec.Name.Value] = p
	for i := range spec.Limits {
		l := c.compileLimit(&spec.Limits[i], spec.Name.Value, layerPlan)
		if l == nil {
			continue
		}
		p.limits = append(p.limits, l)
		p.specs[l.ID] = &spec.Limits[i]
	}
}

// checkIDs checks that ids are unique over each plan and the shared limits together.
func (c *compiler) checkIDs() {
	sharedIDs := map[string]*Limit{}
	for _, l := range c.shared {
		c.checkID(l, sharedIDs)
	}
	for _, spec := range c.doc.Plans {
		ids := map[string]*Limit{}
		for _, l := range c.plans[spec.Name.Value].limits {
			if other := sharedIDs[l.ID]; other != nil {
				c.fail(l.Line, "id", "%s is also the id of a shared limit (%s): give one of them another", Quote(l.ID), c.doc.At(other.Line))
			}
			c.checkID(l, ids)
		}
	}
}

func (c *compiler) checkID(l *Limit, seen map[string]*Limit) {
	if other := seen[l.ID]; other != nil {
		where := "the shared limits"
		if l.Plan != "" {
			where = "plan " + l.Plan
		}
		c.fail(l.Line, "id", "%s is already the id of a limit (%s): ids are unique within %s", Quote(l.ID), c.doc.At(other.Line), where)
		l.broken = true // it would tie with the other one
		return
	}
	seen[l.ID] = l
}

func (c *compiler) checkReplaces() {
	for _, spec := range c.doc.Plans {
		p := c.plans[spec.Name.Value]
		for i := range spec.Limits {
			for _, id := range spec.Limits[i].Replaces {
				c.checkReplaced(p, &spec.Limits[i], id)
			}
		}
	}
	for i := range c.doc.Shared {
		for _, id := range c.doc.Shared[i].Replaces {
			c.checkReplacedShared(c.doc.Shared[i].ID.Value, id)
		}
	}
}

// checkReplaced checks that a limit replaces only coarser ones, and those whose place it takes
// anyway. That also prevents limits from replacing each other in a circle.
func (c *compiler) checkReplaced(p *plan, spec *RuleSpec, id Text) {
	finer, coarser := withID(p.limits, spec.ID.Value), withID(p.limits, id.Value)
	switch {
	case coarser == nil:
		shared := ""
		if withID(c.shared, id.Value) != nil {
			shared = "; a limit of a plan cannot replace the shared one of that name: shared limits count for all plans"
		}
		c.fail(id.Line, "replaces", "%s%s", p.noLimit(id.Value), shared)
	case finer == nil || finer.broken || coarser.broken:
	case finer == coarser:
		c.fail(id.Line, "replaces", "%s is the limit itself: remove it, or name the limit whose place it takes", Quote(id.Value))
	case takesPlace(finer, coarser):
	case finer.everyLevel:
		c.fail(id.Line, "replaces", "%s has no by, and lifts the limits of every level and group anyway: remove replaces", Quote(finer.ID))
	case coarser.everyLevel:
		c.fail(id.Line, "replaces", "%s has no by, and lifts the limits of every level: no limit replaces it, so give it a condition that these requests do not meet", Quote(coarser.ID))
	case finer.Action == ActionAllow:
		c.fail(id.Line, "replaces", "a limit with action: allow only passes its own level and replaces nothing: remove it")
	case !isFiner(finer.Level(), coarser.Level()):
		c.fail(id.Line, "replaces", "%s does not count by all that %s counts by, and more: only a finer limit can stand in for a coarser one", Quote(finer.ID), Quote(coarser.ID))
	}
}

// checkReplacedShared checks that a shared limit replaces only shared ones whose place it takes
// anyway.
func (c *compiler) checkReplacedShared(by string, id Text) {
	l, replaced := withID(c.shared, by), withID(c.shared, id.Value)
	switch {
	case replaced == nil:
		c.fail(id.Line, "replaces", "there is no shared limit %s; a shared limit cannot replace one of a plan: move it into the plan", Quote(id.Value))
	case l == nil || l.broken || replaced.broken:
	case l.everyLevel:
		c.fail(id.Line, "replaces", "%s has no by, and lifts the limits of every level and group anyway: remove replaces", Quote(by))
	case !takesPlace(l, replaced):
		c.fail(id.Line, "replaces", "%s cannot replace %s: a shared limit replaces those of its own by and group alone, if it is more specific; remove it, or write both into the plans", Quote(by), Quote(id.Value))
	}
}

// withID returns the limit that has the id, or nil.
func withID(limits []*Limit, id string) *Limit {
	if i := slices.IndexFunc(limits, func(l *Limit) bool { return l.ID == id }); i >= 0 {
		return limits[i]
	}
	return nil
}

// isFiner reports whether a level has all dimensions of another one and more.
func isFiner(finer, coarser []string) bool {
	for _, d := range coarser {
		if !slices.Contains(finer, d) {
			return false
		}
	}
	return len(finer) > len(coarser)
}

// register adds a limit to the set and sets its order.
func (c *compiler) register(l *Limit) {
	l.Order = len(c.limits)
	c.limits = append(c.limits, l)
	if l.layer != layerOverride {
		c.set.Limits = append(c.set.Limits, l)
	}
	l.Ordinal = c.ordinal(l.ID)
}

// ordinal returns the index of an id in the set's list of ids.
func (c *compiler) ordinal(id string) int {
	n, ok := c.ordinals[id]
	if !ok {
		n = len(c.set.IDs)
		c.ordinals[id] = n
		c.set.IDs = append(c.set.IDs, id)
	}
	return n
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// sortByOrder sorts limits in the order of the file. Tenants that were compiled one by
// one have no order there, and are sorted by their names.
func sortByOrder(limits []*Limit) {
	slices.SortFunc(limits, func(a, b *Limit) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Tenant, b.Tenant))
	})
}
