package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/limitgate/limitgate/controlplane/audit"
	"github.com/limitgate/limitgate/controlplane/table"
)

// maxDifferences bounds the differences that a line of a history shows.
const maxDifferences = 4

func runHistory(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits history", limitsAbout("history"), "limitgate limits history --bucket limits-audit acme")
	return showHistory(ctx, env, fs, args, func(entries []audit.Entry) { printHistory(env.stdout, entries) })
}

// printHistory prints a line for each change.
func printHistory(w io.Writer, entries []audit.Entry) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range entries {
		e := &entries[i]
		c := changeOf(e)
		difference := shortDiff(&c)
		if !e.ChangesLimits() {
			difference = "none of the limits: other attributes of the item"
		}
		fmt.Fprintf(tw, "%s\tversion %d\tby %s\t%s\t%s\n", e.At.Format(time.RFC3339), e.Version, table.Printable(e.Actor), c.Kind(), difference)
	}
	_ = tw.Flush()
}

// shortDiff summarizes a change in a few words.
func shortDiff(c *table.Change) string {
	var before []byte
	if c.Before != nil {
		before = c.Before.Body
	}
	differences := table.Differences(before, c.After)
	if n := len(differences) - maxDifferences; n > 0 {
		differences = append(differences[:maxDifferences], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(differences, ", ")
}
