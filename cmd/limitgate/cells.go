package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awsclient"
	"github.com/limitgate/limitgate/limit"
)

const cellsAbout = `Shows the cells that share the limits of a table, and changes them.

Usage:

	limitgate cells --cells TABLE --table TABLE
	limitgate cells weight --cells TABLE CELL WEIGHT
	limitgate cells drain --cells TABLE CELL
	limitgate cells join --cells TABLE CELL
	limitgate cells forget --cells TABLE CELL

A cell is there once a proxy says so, by limitgate serve --cells-id. Of each limit it
gets the part that is its weight among the weights of all active cells. drain
takes its part away, for when traffic goes elsewhere, and join gives it back.
forget removes one that has gone for good: one that is only cut off would count in
none of the others when it comes back. The control plane sees to it within some
seconds.

All exit with 0 when it is done, 1 when not, and 64 when the arguments are wrong.`

// errNoWeight is returned for an argument that is not the weight of a cell.
var errNoWeight = errors.New("no weight")

// cellsCommands are the commands of cells, which change one cell each.
func cellsCommands() []subcommand {
	changes := []struct {
		word   string
		change func(ctx context.Context, r *dynamo.Registry, id, argument string) error
	}{
		{"weight", weighCell},
		{"drain", func(ctx context.Context, r *dynamo.Registry, id, _ string) error { return r.SetDraining(ctx, id, true) }},
		{"join", func(ctx context.Context, r *dynamo.Registry, id, _ string) error {
			return r.SetDraining(ctx, id, false)
		}},
		{"forget", func(ctx context.Context, r *dynamo.Registry, id, _ string) error {
			return forgetCell(ctx, r, id, time.Now())
		}},
	}
	var all []subcommand
	for _, c := range changes {
		all = append(all, subcommand{name: c.word, run: func(ctx context.Context, env *environment, args []string) int {
			return runCell(ctx, env, c.word, args, func(r *dynamo.Registry, id, argument string) error { return c.change(ctx, r, id, argument) })
		}})
	}
	return all
}

// weighCell changes the weight of a cell.
func weighCell(ctx context.Context, r *dynamo.Registry, id, weight string) error {
	n, err := strconv.ParseInt(weight, 10, 64)
	if err != nil || n < 1 || n > limit.MaxCellWeight {
		return fmt.Errorf("change cell %s: %q is %w: write a whole number from 1 to %d", id, weight, errNoWeight, limit.MaxCellWeight)
	}
	return r.SetWeight(ctx, id, n)
}

func runCells(ctx context.Context, env *environment, args []string) int {
	for _, c := range cellsCommands() {
		if len(args) > 0 && args[0] == c.name {
			return c.run(ctx, env, args[1:])
		}
	}
	return runCellsList(ctx, env, args)
}

// runCell changes one cell. Only weight takes another argument.
func runCell(ctx context.Context, env *environment, word string, args []string, change func(r *dynamo.Registry, id, argument string) error) int {
	fs := newFlags(env, "cells "+word, cellsAbout, "limitgate cells drain --cells cells eu-central-1")
	name := fs.String("cells", "", "`name` of the DynamoDB table in which cells are registered")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	wanted := 1
	if word == "weight" {
		wanted = 2
	}
	if fs.NArg() != wanted || *name == "" {
		example := "limitgate cells " + word + " --cells cells eu-central-1"
		if wanted == 2 {
			example += " 2"
		}
		fmt.Fprintf(env.stderr, "limitgate cells %s: %s: %s\n", word, missingFlags(fs, wanted, "cells"), example)
		return exitUsage
	}
	aws, err := awsclient.Load(ctx)
	if err == nil {
		err = change(dynamo.NewRegistry(aws, *name), fs.Arg(0), fs.Arg(1))
	}
	if errors.Is(err, dynamo.ErrNoCell) {
		err = fmt.Errorf("%w: its first proxy registers it: limitgate serve --cells-id %s", err, fs.Arg(0))
	}
	switch {
	case errors.Is(err, errNoWeight):
		fmt.Fprintln(env.stderr, "limitgate cells weight:", err)
		return exitUsage
	case err != nil:
		return fail(env, err)
	}
	return exitOK
}

// forgetCell removes a cell that is gone from the registry.
func forgetCell(ctx context.Context, r *dynamo.Registry, id string, now time.Time) error {
	cells, err := r.Cells(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(cells, func(c table.RegisteredCell) bool { return c.ID == id })
	if i < 0 {
		return fmt.Errorf("forget cell %s: %w", id, dynamo.ErrNoCell)
	}
	if age := now.Sub(cells[i].Beat); age.Abs() < controlplane.CellGone {
		return fmt.Errorf("forget cell %s: its last heartbeat was %s ago: drain it and stop its proxies first, or it returns with the weight of their flags", id, age.Round(time.Second))
	}
	return r.Forget(ctx, id)
}

func runCellsList(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "cells", cellsAbout, "limitgate cells --cells cells --table limits")
	registered := fs.String("cells", "", "`name` of the DynamoDB table in which cells are registered")
	limits := fs.String("table", "", "`name` of the DynamoDB table of limits")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if fs.NArg() > 0 || *registered == "" || *limits == "" {
		problem := noCommand(fs, cellsCommands())
		if problem == "" {
			problem = missingFlags(fs, 0, "cells", "table") + "; or "
		}
		fmt.Fprintf(env.stderr, "limitgate cells: %ssay weight, drain, join or forget; limitgate cells --help says more\n", problem)
		return exitUsage
	}
	aws, err := awsclient.Load(ctx)
	if err != nil {
		return fail(env, err)
	}
	registry := dynamo.NewRegistry(aws, *registered)
	cells, err := registry.Cells(ctx)
	if err == nil && len(cells) == 0 {
		err = registry.CheckKey(ctx)
	}
	if err != nil {
		return fail(env, err)
	}
	it, _, err := dynamo.NewTable(aws, *limits).Get(ctx, table.KeyCells)
	if err != nil {
		return fail(env, err)
	}
	var set table.CellSet
	if it.Body != nil && !it.Deleted {
		if set, err = table.ReadCellSet(it.Body); err != nil {
			return fail(env, err)
		}
	}
	printCells(env.stdout, cells, &set, it.Version, time.Now())
	return exitOK
}

// printCells prints a line for each registered cell.
func printCells(w io.Writer, cells []table.RegisteredCell, set *table.CellSet, version int64, now time.Time) {
	active := set.Active()
	total := int64(0)
	for _, c := range active {
		total += c.Weight
	}
	share := "cells share"
	if len(active) == 1 {
		share = "cell has"
	}
	fmt.Fprintf(w, "%d %s the limits, version %d\n", len(active), share, version)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CELL\tWEIGHT\tSTATE\tPART\tLAST HEARD OF")
	for _, c := range cells {
		state, part := "new", "-"
		for _, in := range set.Cells {
			switch {
			case in.ID != c.ID:
			case in.Gone:
				state = "gone"
			case in.Draining:
				state = "draining"
			default:
				state, part = "active", fmt.Sprintf("%.1f %%", 100*float64(in.Weight)/float64(total))
			}
		}
		heard := now.Sub(c.Beat).Round(time.Second).String() + " ago"
		if ahead := c.Beat.Sub(now); ahead > controlplane.CellAhead {
			heard = "its clock is " + ahead.Round(time.Second).String() + " ahead"
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t%s\n", table.Printable(c.ID), c.Weight, state, part, heard)
	}
	_ = tw.Flush()
}
