package replay

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// Write prints the report for people.
func (r *Report) Write(w io.Writer) {
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "WARNING: %s\n", warning)
	}
	fmt.Fprintf(w, "%d requests: %d admitted, %d denied (%s)\n", r.Requests, r.Admitted, r.Denied, percent(r.Denied, r.Requests))
	if r.From != nil && r.To != nil {
		fmt.Fprintf(w, "from %s to %s; busiest second %s with %d requests\n", stamp(r.From), stamp(r.To), stamp(r.BusiestSecond), r.BusiestCount)
	}
	if r.FirstDenial != nil {
		fmt.Fprintf(w, "first denial %s\n", stamp(r.FirstDenial))
	}
	if r.OutOfOrder > 0 {
		fmt.Fprintf(w, "%d lines stood behind later ones, and were decided in the order of time\n", r.OutOfOrder)
	}
	r.writeUnparsed(w)
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "limit\trequests\tadmitted\tdenied\twould deny\t")
	for _, l := range r.Limits {
		would := "?"
		if l.WouldDeny != nil {
			would = strconv.FormatInt(*l.WouldDeny, 10)
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%s\t\n", l.ID, l.Requests, l.Admitted, l.Denied, would)
	}
	_ = tw.Flush()
	r.writeNotes(w)
	if len(r.TopDenied) == 0 {
		return
	}
	fmt.Fprintln(w, "\nbuckets that denied most (addresses are hashed):")
	tw = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, b := range r.TopDenied {
		fmt.Fprintf(tw, "%d\t  %s\n", b.Denied, b.Bucket)
	}
	_ = tw.Flush()
}

// writeNotes explains the columns of the table that do not add up.
func (r *Report) writeNotes(w io.Writer) {
	rest, hidden := false, false
	for _, l := range r.Limits {
		rest = rest || l.Requests > l.Admitted+l.Denied
		hidden = hidden || l.WouldDeny == nil
	}
	if rest {
		fmt.Fprintln(w, "Of the requests that met a limit, the rest were denied by another one.")
	}
	if hidden {
		fmt.Fprintln(w, "?: a proxy does not report the requests that a shadow limit would have denied; its limitgate_decisions_total{verdict=\"would_deny\"} does.")
	}
}

func (r *Report) writeUnparsed(w io.Writer) {
	if r.Unparsed == 0 {
		return
	}
	fmt.Fprintf(w, "%d lines were left out because they do not parse:\n", r.Unparsed)
	for _, line := range r.UnparsedSample {
		fmt.Fprintf(w, "  %s\n", line)
	}
	if more := r.Unparsed - int64(len(r.UnparsedSample)); more > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
}

// Write prints the comparison for people.
func (c *Comparison) Write(w io.Writer, oldName, newName string) {
	fmt.Fprintf(w, "old: %s\nnew: %s\n", oldName, newName)
	fmt.Fprintf(w, "%d requests: %d newly denied, %d newly admitted\n\n", c.Old.Requests, c.NewlyDenied, c.NewlyAdmitted)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\told\tnew\tdifference\t")
	row := func(name string, before, after int64) {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%+d\t\n", name, before, after, after-before)
	}
	row("admitted", c.Old.Admitted, c.New.Admitted)
	row("denied", c.Old.Denied, c.New.Denied)
	for _, l := range c.Old.Limits {
		after := find(c.New.Limits, l.ID)
		row("denied by "+l.ID, l.Denied, after.Denied)
		if *l.WouldDeny+*after.WouldDeny > 0 {
			row("would deny by "+l.ID, *l.WouldDeny, *after.WouldDeny)
		}
	}
	for _, l := range c.New.Limits {
		if before := find(c.Old.Limits, l.ID); before.ID == "" {
			row("denied by "+l.ID, 0, l.Denied)
		}
	}
	_ = tw.Flush()
}

func find(limits []LimitReport, id string) LimitReport {
	for _, l := range limits {
		if l.ID == id {
			return l
		}
	}
	return LimitReport{WouldDeny: new(int64)}
}

func percent(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

func stamp(t *time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }
