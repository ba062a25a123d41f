package replay

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Write prints the report for people.
func (r *Report) Write(w io.Writer) {
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "WARNING: %s\n", warning)
	}
	fmt.Fprintf(w, "%s: %d admitted, %d denied (%s)\n", counted(r.Requests, "request"), r.Admitted, r.Denied, percent(r.Denied, r.Requests))
	r.writeSpan(w)
	if r.FirstDenial != nil {
		fmt.Fprintf(w, "first denial %s\n", stamp(r.FirstDenial))
	}
	r.writeMoved(w)
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "limit\trequests\tadmitted\tdenied\twould deny\tleast left\t")
	for _, l := range r.Limits {
		would := "?"
		if l.WouldDeny != nil {
			would = strconv.FormatInt(*l.WouldDeny, 10)
		}
		least := ""
		if l.Closest != nil {
			least = fmt.Sprintf("%d of %d", l.Closest.Left, l.Closest.Of)
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%s\t%s\t\n", l.ID, l.Requests, l.Admitted, l.Denied, would, least)
	}
	_ = tw.Flush()
	r.writeNotes(w)
	r.writeClosest(w)
	if len(r.TopDenied) == 0 {
		return
	}
	fmt.Fprintln(w, "\nbuckets that denied most"+r.hashed()+":")
	tw = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, b := range r.TopDenied {
		fmt.Fprintf(tw, "%d\t  %s\n", b.Denied, b.Bucket)
	}
	_ = tw.Flush()
}

// writeSpan prints the time of the log.
func (r *Report) writeSpan(w io.Writer) {
	if r.From != nil && r.To != nil {
		fmt.Fprintf(w, "from %s to %s; busiest second %s with %s\n", stamp(r.From), stamp(r.To), stamp(r.BusiestSecond), counted(r.BusiestCount, "request"))
	}
}

// writeMoved prints how many lines were not decided where they stand, or at all.
func (r *Report) writeMoved(w io.Writer) {
	if r.OutOfOrder > 0 {
		fmt.Fprintf(w, "%s behind later ones, and decided in the order of time\n", lines(r.OutOfOrder, "was", "were"))
	}
	writeUnparsed(w, r.Unparsed, r.UnparsedSample)
}

// hashed says how to see the addresses of buckets.
func (r *Report) hashed() string {
	if r.addresses {
		return ""
	}
	return " (addresses are hashed, --show-addresses adds them)"
}

// writeClosest prints the buckets that had the least left, and the rates that would have denied a
// part of the requests.
func (r *Report) writeClosest(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	heading := "\nclosest to each limit:\n"
	for _, l := range r.Limits {
		if l.Closest != nil {
			fmt.Fprintf(tw, "%s  %s\t%d left at\t%s\t%s\n", heading, l.ID, l.Closest.Left, stamp(&l.Closest.At), l.Closest.Bucket)
			heading = ""
		}
	}
	_ = tw.Flush()
	tw = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	heading = "\nrequests for a bucket in the period of its rate that would deny none, 0.1 % or 1 % of them, as fixed windows:\n  limit\tnone\t0.1 %\t1 %\n"
	for _, l := range r.Limits {
		if l.Rates != nil {
			fmt.Fprintf(tw, "%s  %s\t%d\t%d\t%d\n", heading, l.ID, l.Rates.Nothing, l.Rates.Thousandth, l.Rates.Hundredth)
			heading = ""
		}
	}
	_ = tw.Flush()
}

// lines returns a number of lines, and the verb for them.
func lines(n int64, one, several string) string {
	verb := several
	if n == 1 {
		verb = one
	}
	return counted(n, "line") + " " + verb
}

// writeNotes explains the columns of the table that do not add up.
func (r *Report) writeNotes(w io.Writer) {
	rest, hidden := false, false
	for _, l := range r.Limits {
		rest = rest || l.Requests > l.Admitted+l.Denied
		hidden = hidden || l.WouldDeny == nil
	}
	if len(r.Allowing) > 0 {
		fmt.Fprintf(w, "Not counted, as their action is allow: %s\n", strings.Join(r.Allowing, ", "))
	}
	if len(r.Concurrency) > 0 {
		fmt.Fprintf(w, "Not counted, as a log has no slots that requests hold: %s\n", strings.Join(r.Concurrency, ", "))
	}
	if len(r.charged) > 0 {
		fmt.Fprintf(w, "Each line costs 1 unit here. Where callers charge more, such as bytes, less was left: %s\n", strings.Join(r.charged, ", "))
	}
	if rest {
		fmt.Fprintln(w, "Requests of a limit that it neither admitted nor denied were denied by another limit.")
	}
	if hidden {
		fmt.Fprintln(w, "?: a proxy does not report the requests that a shadow limit would have denied; its limitgate_decisions_total{verdict=\"would_deny\"} does.")
	}
}

// Write prints the comparison for people.
func (c *Comparison) Write(w io.Writer, oldName, newName string) {
	for _, warning := range c.Old.Warnings {
		of := "of old: "
		if slices.Contains(c.New.Warnings, warning) {
			of = ""
		}
		fmt.Fprintf(w, "WARNING: %s%s\n", of, warning)
	}
	for _, warning := range c.New.Warnings {
		if !slices.Contains(c.Old.Warnings, warning) {
			fmt.Fprintf(w, "WARNING: of new: %s\n", warning)
		}
	}
	fmt.Fprintf(w, "old: %s\nnew: %s\n", oldName, newName)
	fmt.Fprintf(w, "%s: %d newly denied, %d newly admitted\n", counted(c.Old.Requests, "request"), c.NewlyDenied, c.NewlyAdmitted)
	c.Old.writeSpan(w)
	c.Old.writeMoved(w)
	fmt.Fprintln(w)
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

// stamp returns a time in UTC, which the Z says.
func stamp(t *time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// counted returns a number of things: 1 request, 2 requests.
func counted(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
