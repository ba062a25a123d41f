package integration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// stuck bounds how much later than the decision timeout a reply may arrive during any
// fault, unless the machine was stalled.
const stuck = 100 * time.Millisecond

// outcome is the result of a run with a fault.
type outcome struct {
	fault            fault
	scene            *scene
	samples          []sample
	stalls           []stall
	made, healed, ok time.Time // ok is when the state became normal again
	closed           time.Time // when the breakers of all proxies were closed
	explained        explained
	notes            []string // printed below the table
}

// note adds a line below the table.
func (o *outcome) note(format string, args ...any) {
	o.notes = append(o.notes, o.fault.name+": "+fmt.Sprintf(format, args...))
}

func (o *outcome) begin() time.Time { return o.samples[0].at }

func (o *outcome) end() time.Time { return o.samples[len(o.samples)-1].at }

// seconds returns the duration of the load.
func (o *outcome) seconds() float64 { return o.end().Sub(o.begin()).Seconds() }

// count counts samples.
func (o *outcome) count(is func(s *sample) bool) int {
	n := 0
	for i := range o.samples {
		if is(&o.samples[i]) {
			n++
		}
	}
	return n
}

// overshoot returns the admissions of the tight limits, as a multiple of their allowance.
func (o *outcome) overshoot() float64 {
	admitted := o.count(func(s *sample) bool { return s.op == opTight && s.allowed })
	return float64(admitted) / (tightTenants * tightRate * (1 + o.seconds()))
}

// check fails the test if a guarantee is violated.
func (o *outcome) check(t *testing.T) {
	t.Helper()
	late := o.fault.deadline() + stuck
	for what, broken := range map[string]func(s *sample) bool{
		"errors":        func(s *sample) bool { return s.problem != "" },
		"wrong denials": (*sample).wrong,
		"replies that came late although the machine did not stand still": func(s *sample) bool {
			return s.took > late && s.took-s.stalled(o.stalls) > late
		},
	} {
		if n := o.count(broken); n > 0 {
			t.Errorf("%d %s:%s", n, what, o.first(broken))
		}
	}
	if got := o.overshoot(); got > ceiling {
		t.Errorf("%.2f times the allowed units were admitted", got)
	}
	if t.Failed() {
		for _, p := range o.scene.proxies {
			t.Logf("a proxy's log:\n%s", p.output())
		}
	}
}

// first describes the first samples for which is returns true.
func (o *outcome) first(is func(s *sample) bool) string {
	var text strings.Builder
	for i, n := 0, 0; i < len(o.samples) && n < 10; i++ {
		s := &o.samples[i]
		if !is(s) {
			continue
		}
		n++
		fmt.Fprintf(&text, "\n%.3f s after the fault was made, %.3f s after it was mended: proxy %d, %s of %s on shard %d: allowed %v, source %q, error %q, after %s, of which the machine stood still for %s",
			s.at.Sub(o.made).Seconds(), s.at.Sub(o.healed).Seconds(), s.proxy, s.op, s.tenant, o.scene.FirstOwner(s.slot()),
			s.allowed, s.source, s.problem, s.took, s.stalled(o.stalls))
	}
	return text.String()
}

// between returns the durations of the checks that were made between two instants and
// that pass, in ascending order.
func (o *outcome) between(from, to time.Time, pass func(s *sample) bool) []time.Duration {
	return o.times(from, to, pass, nil)
}

func (o *outcome) times(from, to time.Time, pass func(s *sample) bool, without []stall) []time.Duration {
	var took []time.Duration
	for i := range o.samples {
		if s := &o.samples[i]; !s.at.Before(from) && s.at.Before(to) && pass(s) {
			took = append(took, s.took-s.stalled(without))
		}
	}
	slices.SortFunc(took, cmp.Compare)
	return took
}

func anySample(*sample) bool { return true }

// at returns a quantile of ascending durations.
func at(took []time.Duration, q float64) time.Duration {
	if len(took) == 0 {
		return 0
	}
	return took[int(q*float64(len(took)-1))]
}

// milliseconds formats quantiles of ascending durations, "-" if there are none.
func milliseconds(took []time.Duration, quantiles ...float64) string {
	if len(took) == 0 {
		return "-"
	}
	var words []string
	for _, q := range quantiles {
		words = append(words, fmt.Sprintf("%.1f", at(took, q).Seconds()*1e3))
	}
	return strings.Join(words, " / ")
}

// longestStall returns the longest stall of the machine, so that its time is not
// attributed to the proxy.
func (o *outcome) longestStall() time.Duration {
	var longest time.Duration
	for _, s := range o.stalls {
		longest = max(longest, s.to.Sub(s.from))
	}
	return longest
}

// cells returns the row of a run.
func (o *outcome) cells() []string {
	number := func(is func(s *sample) bool) string { return fmt.Sprint(o.count(is)) }
	return []string{
		o.fault.name,
		fmt.Sprint(len(o.samples)),
		number(func(s *sample) bool { return s.problem != "" }),
		number((*sample).wrong),
		number((*sample).failedClosed) + " of " + number(func(s *sample) bool { return s.op == opClosed }),
		number(func(s *sample) bool { return s.source == "backstop" }),
		fmt.Sprintf("%.2f", o.overshoot()),
		milliseconds(o.between(o.begin(), o.made, anySample), 0.5, 0.99),
		milliseconds(o.between(o.made, o.healed, anySample), 0.5, 0.99, 0.999, 1),
		milliseconds(o.between(maxTime(o.ok, o.healed), o.end(), anySample), 0.5, 0.99),
		fmt.Sprintf("%.1f s", max(0, o.ok.Sub(o.healed).Seconds())),
		fmt.Sprintf("%.0f", o.longestStall().Seconds()*1e3),
		o.explained.cell(),
	}
}

// longestName is the width of the first column, also for lines that are printed before a
// longer name is known.
const longestName = 46

// table is the results of all runs, in Markdown.
type table struct {
	titles []string
	rows   [][]string
	notes  []string
}

func newTable() *table {
	return &table{titles: []string{
		"fault", "checks", "errors", "wrong denials", "closed denied", "by the backstop", "admitted / allowed",
		"ms before: p50 / p99", "during: p50 / p99 / p99.9 / max", "after: p50 / p99", "normal after", "machine stood still, ms",
		"histories / calls / unanswered / lost",
	}}
}

// add adds a row and returns it in one line.
func (b *table) add(o *outcome) string {
	b.rows = append(b.rows, o.cells())
	b.notes = append(b.notes, o.notes...)
	return b.line(o.cells(), b.widths())
}

// widths returns the widths of the columns.
func (b *table) widths() []int {
	widths := make([]int, len(b.titles))
	for _, row := range append([][]string{b.titles}, b.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	widths[0] = max(widths[0], longestName)
	return widths
}

func (*table) line(cells []string, widths []int) string {
	var line strings.Builder
	for i, cell := range cells {
		if i == 0 {
			fmt.Fprintf(&line, "| %-*s |", widths[i], cell)
			continue
		}
		fmt.Fprintf(&line, " %*s |", widths[i], cell)
	}
	return line.String()
}

// String returns the table with its notes.
func (b *table) String() string {
	widths := b.widths()
	lines := []string{b.line(b.titles, widths)}
	rule := "|"
	for i, w := range widths {
		if i == 0 {
			rule += strings.Repeat("-", w+2) + "|"
			continue
		}
		rule += strings.Repeat("-", w+1) + ":|"
	}
	lines = append(lines, rule)
	for _, row := range b.rows {
		lines = append(lines, b.line(row, widths))
	}
	lines = append(lines, "")
	for _, note := range b.notes {
		lines = append(lines, "- "+note)
	}
	return strings.Join(lines, "\n")
}
