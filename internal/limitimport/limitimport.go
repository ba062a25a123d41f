// Package limitimport turns the configuration of other limiters into limits files.
//
// A limits file never admits more than the configuration without a remark that says so: all that
// cannot be said, or means something else here, has one.
package limitimport

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// Result is a limits file, and what it does not say.
type Result struct {
	// File is the limits file, in YAML.
	File []byte
	// Shadow is a limits file in which all that File enforces is in shadow mode. If File enforces nothing it is File.
	Shadow []byte
	// Remarks are in the order of their lines.
	Remarks []Remark
}

// Remark says what of a configuration is not in the limits file, or means something else there.
type Remark struct {
	File string // of a configuration of several files
	Line int    // of the configuration
	Text string
}

// imported is a limit of the file.
type imported struct {
	id, rate, algorithm, group string
	action                     string // in place of a rate
	by                         []string
	when                       []condition
	burst                      int64  // 0 for a limit that has none
	missing                    string // "" for the default
	shadow, closed             bool
	dry                        bool     // it is in shadow mode in a file that enforces others, too
	coarser                    []string // the keys of limits of other levels whose place it takes, or of one that it lifts
	replaces                   []string // the ids of limits whose place it takes, as in the configuration
}

// condition is an entry of when.
type condition struct{ dimension, pattern string }

// draft collects limits and remarks.
type draft struct {
	tenant, shared []imported      // the limits of the plan, and those that span tenants
	maxLevels      int             // 0 for the usual number
	secret         map[string]bool // dimensions with the values of headers for credentials
	advised        []condition     // of limits that remarks advise
	advisedIDs     names
	advisedLimits  map[string]advised // by place and conditions
	remarks        []Remark
	added          map[string]bool // the limits
	said           map[Remark]bool // the remarks at a line
	once           map[string]int  // the indexes of remarks on the whole configuration, by their texts, until they are sorted
}

// advised is a limit that a remark on a line advises.
type advised struct {
	id   string
	line int
}

// nameAdvised gives a limit that a remark on a line advises an id of its own. If a remark advises a limit of its place and
// conditions already, it gives it that id, and returns the line of that remark.
func (d *draft) nameAdvised(l *imported, line int) (first int, known bool) {
	if d.advisedLimits == nil {
		d.advisedLimits, d.advisedIDs = map[string]advised{}, names{}
	}
	key := l.place() + fmt.Sprint(l.when)
	a, known := d.advisedLimits[key]
	if !known {
		a = advised{d.advisedIDs.unique(word(fmt.Sprintf("%s-line-%d", strings.TrimSuffix(l.id, "-allow"), line))), line}
		d.advisedLimits[key] = a
	}
	l.id = a.id
	return a.line, known
}

func (d *draft) remark(line int, format string, args ...any) {
	d.remarkAt("", line, format, args...)
}

// remarkAt adds a remark about a configuration of several files.
func (d *draft) remarkAt(file string, line int, format string, args ...any) {
	r := Remark{file, line, fmt.Sprintf(format, args...)}
	if d.isNew(r) {
		d.remarks = append(d.remarks, r)
	}
}

// remarkOnce adds a remark that is true of the whole configuration, at its first line.
func (d *draft) remarkOnce(line int, text string) {
	i, known := d.once[text]
	if !known {
		if d.once == nil {
			d.once = map[string]int{}
		}
		i = len(d.remarks)
		d.remarks, d.once[text] = append(d.remarks, Remark{Line: line, Text: text}), i
	}
	d.remarks[i].Line = min(d.remarks[i].Line, line)
}

func (d *draft) isNew(r Remark) bool {
	if d.said == nil {
		d.said = map[Remark]bool{}
	}
	was := d.said[r]
	d.said[r] = true
	return !was
}

// add adds a limit, and reports whether it is new: an equal one counts the same requests already. A
// limit by tenant is one of the plan.
func (d *draft) add(l imported) bool {
	to := &d.shared
	if slices.Contains(l.by, "tenant") {
		to = &d.tenant
	}
	if d.added == nil {
		d.added = map[string]bool{}
	}
	key := fmt.Sprint(l)
	if d.added[key] {
		return false
	}
	d.added[key] = true
	*to = append(*to, l)
	return true
}

// result writes the file.
func (d *draft) result() Result {
	d.name()
	slices.SortStableFunc(d.remarks, func(a, b Remark) int { return cmp.Or(cmp.Compare(a.File, b.File), a.Line-b.Line) })
	d.countLevels()
	r := Result{File: d.file(), Remarks: d.remarks}
	if !slices.ContainsFunc(slices.Concat(d.tenant, d.shared), func(l imported) bool { return !l.shadow }) {
		r.Shadow = r.File
		return r
	}
	d.tenant, d.shared = inShadow(d.tenant), inShadow(d.shared)
	d.name()
	r.Shadow = d.file()
	return r
}

// usualLevels is the number of limits that may count one request unless the file says max_levels, and
// mostLevels the largest that it may say.
const (
	usualLevels = 8
	mostLevels  = 64
)

// countLevels sets maxLevels, if more limits than usual may count one request. Limits of one place are alternatives, so that
// a file of few places needs no search.
func (d *draft) countLevels() {
	places := map[string]bool{}
	for _, l := range slices.Concat(d.tenant, d.shared) {
		places[l.place()] = true
	}
	if len(places) <= usualLevels {
		return
	}
	d.maxLevels = mostLevels
	set, _, err := config.ParseLimits("", d.file(), limit.CompileOptions{IPMaxTTL: math.MaxInt64})
	switch {
	case err != nil: // limits lint says why
		d.maxLevels = min(len(places), mostLevels)
	case set.MaxEnforced() <= usualLevels:
		d.maxLevels = 0
	default:
		d.maxLevels = set.MaxEnforced()
	}
}

// name makes the ids of all limits unique, and names the limits that others replace.
func (d *draft) name() {
	used := names{}
	name(d.tenant, used)
	name(d.shared, used)
}

// file returns the limits file.
func (d *draft) file() []byte {
	var b strings.Builder
	b.WriteString("version: 1\n")
	if d.maxLevels > 0 {
		fmt.Fprintf(&b, "max_levels: %d # so many limits could count one request\n", d.maxLevels)
	}
	d.writeDimensions(&b)
	if len(d.tenant) > 0 {
		b.WriteString("default_plan: default\nplans:\n  default:\n")
		for i := range d.tenant {
			d.tenant[i].write(&b, "    ")
		}
	}
	if len(d.shared) > 0 {
		b.WriteString("shared:\n")
		for i := range d.shared {
			d.shared[i].write(&b, "  ")
		}
	}
	return []byte(b.String())
}

const (
	// maxReplaces bounds the pairs of limits of one place that are compared for replaces. Without that a limit takes the
	// place of others all the same, and limits lint warns of it.
	maxReplaces = 1_000_000
	// mostReplaced is how many limits replaces names.
	mostReplaced = 20
)

// name makes the ids unique, and names the limits that others replace: less specific ones that count by the same.
func name(limits []imported, used names) {
	for i := range limits {
		l := &limits[i]
		l.id = used.unique(word(l.id))
	}
	places, ids := map[string][]*imported{}, map[string]string{}
	for i := range limits {
		if l := &limits[i]; l.action == "" {
			for _, key := range []string{l.place(), l.place() + l.hostKey()} {
				places[key] = append(places[key], l)
			}
			ids[l.key()] = l.id
		}
	}
	for i := range limits {
		for _, key := range limits[i].coarser {
			if ids[key] != "" && !slices.Contains(limits[i].replaces, ids[key]) {
				limits[i].replaces = append(limits[i].replaces, ids[key])
			}
		}
	}
	compared := 0
	for i := range limits {
		if l := &limits[i]; len(l.when) > 0 {
			of := places[l.place()]
			if host := l.hostKey(); host != anyHost { // it meets no other host's
				of = slices.Concat(places[l.place()+anyHost], places[l.place()+host])
			}
			if compared += len(of); compared > maxReplaces {
				return
			}
			l.nameReplaced(of)
		}
	}
}

// anyHost is the hostKey of limits that are for no host alone.
const anyHost = " *"

// hostKey names the host that a limit is for: limits with different ones meet no request both, but for those with anyHost. A place
// stands in front of it.
func (l *imported) hostKey() string {
	for _, on := range l.when {
		if (on.dimension == "host" || on.dimension == "server_name") && !strings.HasSuffix(on.pattern, "*") {
			return " " + on.pattern
		}
	}
	return anyHost
}

// nameReplaced names the limits of its place that l replaces, if it counts.
func (l *imported) nameReplaced(of []*imported) {
	if l.action != "" {
		return
	}
	for _, other := range of {
		if l.takesPlaceOf(other) && l.meets(other.when) && (l.shadow || !other.shadow) && !slices.Contains(l.replaces, other.id) {
			l.replaces = append(l.replaces, other.id)
		}
	}
	if len(l.replaces) > mostReplaced {
		l.replaces = nil
	}
}

// names are the names that are used, each with the number that its next copy gets.
type names map[string]int

// unique returns a name that is not used yet: the given one, or one with a number behind it.
func (u names) unique(name string) string {
	free := name
	for u[free] > 0 {
		u[name]++
		suffix := "-" + strconv.Itoa(u[name])
		free = name[:min(len(name), maxWord-len(suffix))] + suffix
	}
	u[free] = 1
	return free
}

// word returns text as a name of a limit, a group or a dimension.
func word(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		default:
			return '-'
		}
	}, text)
	if text = strings.Trim(text, "-."); text == "" {
		return "limit"
	}
	return text[:min(len(text), maxWord)]
}

// maxWord bounds the names that are made of a configuration.
const maxWord = 64
