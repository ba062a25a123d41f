package bench

import (
	"fmt"
	"io"
)

// sidesGrid is the table of the measurements of each side.
func (r *Report) sidesGrid() *grid {
	g := &grid{
		head: []string{"case", "side", "per second", "client us", "proxy us", "redis us", "script us", "per script", "p50 ms", "p99 ms", "p99.9 ms"},
		left: 2,
	}
	for i := range r.Cases {
		name := r.Cases[i].Name
		for _, s := range r.Cases[i].Sides {
			g.add(name, s.Name, grouped(s.PerSecond.Median), number(&s.Client), number(s.Proxy), number(s.Store),
				number(s.Script), number(s.Batch), number(&s.P50), number(&s.P99), number(s.P999))
			name = ""
		}
	}
	return g
}

// number formats a median, or a dash if there is none.
func number(s *Spread) string {
	if s == nil || s.Median < 0 {
		return "-"
	}
	switch {
	case s.Median >= 100:
		return fmt.Sprintf("%.0f", s.Median)
	case s.Median >= 10:
		return fmt.Sprintf("%.1f", s.Median)
	case s.Median >= 1:
		return fmt.Sprintf("%.2f", s.Median)
	default:
		return fmt.Sprintf("%.3f", s.Median)
	}
}

// figuresGrid is the table of the figures.
func (r *Report) figuresGrid() *grid {
	g := &grid{head: []string{"case", "figure", "median", "min", "max", "goal", ""}, left: 2}
	for i := range r.Cases {
		c := &r.Cases[i]
		name := c.Name
		if c.Error != "" {
			g.add(name, "failed", "-", "-", "-", "-", "failed")
		}
		for j := range c.Figures {
			g.addFigure(name, &c.Figures[j])
			name = ""
		}
	}
	return g
}

// addFigure adds a row. A figure that was measured once has no range.
func (g *grid) addFigure(name string, f *Figure) {
	low, high := "", ""
	if f.Value.Min != f.Value.Max {
		low, high = f.Unit.Format(f.Value.Min), f.Unit.Format(f.Value.Max)
	}
	g.add(name, f.Name, f.Unit.Format(f.Value.Median), low, high, f.goalText(), f.Verdict)
}

// The colours of verdicts, as escape sequences.
const (
	green = "\x1b[32m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

// WriteText writes the report as text, optionally with colours.
func (r *Report) WriteText(w io.Writer, colours bool) {
	paint := func(cell, padded string) string {
		switch {
		case !colours:
			return padded
		case cell == met:
			return green + padded + plain
		case cell == missed || cell == "failed":
			return red + padded + plain
		default:
			return padded
		}
	}
	r.writeMachine(w, "")
	fmt.Fprintf(w, "\nWhat was measured: medians of %s\n\n", r.Settings.rounds())
	r.sidesGrid().writeText(w, paint)
	fmt.Fprintf(w, "\nLimitgate beside its yardstick: medians of what each round gave\n\n")
	r.figuresGrid().writeText(w, paint)
	r.writeProfiles(w)
	for i := range r.Cases {
		if c := &r.Cases[i]; c.Error != "" {
			fmt.Fprintf(w, "\n%s failed: %s\n", c.Name, c.Error)
		}
	}
	short, goals := r.missed()
	fmt.Fprintf(w, "\n%d of %d goals met, in %.0f s\n", goals-short, goals, r.Seconds)
	if text := r.noise(); text != "" {
		fmt.Fprintln(w, text)
	}
}

// rounds describes the number and duration of the rounds.
func (s *Settings) rounds() string {
	return fmt.Sprintf("%d rounds of %g s for each side", s.Rounds, s.RoundSeconds)
}

// writeMachine writes the description of the machine, with prefix on each line.
func (r *Report) writeMachine(w io.Writer, prefix string) {
	m := &r.Machine
	fmt.Fprintf(w, "%s%s, %d cores, %.0f GiB, %s\n", prefix, m.CPU, m.Cores, m.Memory, m.Kernel)
	fmt.Fprintf(w, "%sredis-server %s, %s, limitgate %s\n", prefix, m.Redis, m.Go, m.Limitgate)
	fmt.Fprintf(w, "%s%s, load average before: %s\n", prefix, r.Started.Format("2006-01-02 15:04 MST"), m.Load)
}

// noisy is the share of the machine in percent from which other processes disturb.
const noisy = 5

// noise lists the cases in which other processes used part of the machine.
func (r *Report) noise() string {
	n, worst := 0, 0.0
	for i := range r.Cases {
		if others := r.Cases[i].Others; others > noisy {
			n, worst = n+1, max(worst, others)
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("Other processes took more than %d %% of the machine, at most %.0f %%, in %d of %d cases: "+
		"compare CPU there, not throughput.", noisy, worst, n, len(r.Cases))
}
