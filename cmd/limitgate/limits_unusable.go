package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/catalog"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// compiles returns the error of compiling parts, or nil.
func (t *tableArgs) compiles(parts map[string]json.RawMessage) error {
	_, _, err := config.CompileParts(t.name, parts, t.opts)
	return err
}

// proxied returns the limits that a proxy makes of parts, which leaves out items that cannot be used, or nil if it can make none. The error is
// that of the items left out.
func (t *tableArgs) proxied(parts map[string]json.RawMessage) (*limit.Set, error) {
	set, _, err := config.CompileParts(t.name, parts, t.opts)
	if err == nil {
		return set, nil
	}
	c := catalog.New(catalog.Options{Name: t.name, Log: slog.New(slog.DiscardHandler), Compile: func(parts map[string]json.RawMessage, _ bool) (*limit.Set, error) {
		set, _, err := config.CompileParts(t.name, parts, t.opts)
		return set, err
	}})
	items := make([]table.Item, 0, len(parts))
	for key, body := range parts {
		// A catalog ignores items without a version, an actor and a time.
		items = append(items, table.Item{Key: key, Version: 1, Actor: "-", At: time.Unix(1, 0), Body: body})
	}
	if c.Load(items) != nil {
		return nil, err
	}
	return c.Set(), err
}

// mostIgnored bounds the items that proxies ignore which are named: more are hardly slips.
const mostIgnored = 10

// ignoredItems describes the items of a table that proxies ignore because no limits have such a key, at most ten of them.
func (t *tableArgs) ignoredItems() (lines []string) {
	if t.table == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(t.items)) {
		if table.IsKey(key) || t.items[key].Deleted {
			continue
		}
		if len(lines) == mostIgnored {
			return append(lines, "proxies ignore further items by their keys")
		}
		line := table.Printable(key) + ": proxies ignore the item by its key, which is none of "
		if meant := keyMeant(key); meant != "" {
			line += "limits; did you mean " + table.Printable(meant) + "?"
		} else {
			line += table.KeyShared + ", " + table.PrefixPlan + "NAME and " + table.PrefixTenant + "NAME"
		}
		lines = append(lines, line)
	}
	return lines
}

// flawedItems describes the items of limits that proxies ignore because they lack a version, an actor or a time, at most ten of them.
func (t *tableArgs) flawedItems() (lines []string) {
	if t.table == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(t.items)) {
		it := t.items[key]
		flaw := it.Flaw()
		if flaw == "" || !table.IsPart(key) {
			continue
		}
		if len(lines) == mostIgnored {
			return append(lines, "proxies ignore further items that limits push has not written")
		}
		lines = append(lines, "proxies ignore "+table.Printable(key)+": "+flaw)
	}
	return lines
}

// newMistakes returns the mistakes in limits, is, that were not among those before, was; nil if there are none. Limits with
// mistakes may be corrected step by step.
func newMistakes(was, is error) error {
	var before, after *limit.Problems
	switch {
	case was == nil || is == nil:
		return is
	case !errors.As(is, &after) || !errors.As(was, &before):
		return nil // an item that is no JSON hides the others
	}
	known := map[[3]string]bool{}
	for _, p := range before.List {
		known[mistake(p)] = true
	}
	added := &limit.Problems{File: after.File}
	for _, p := range after.List {
		if !known[mistake(p)] {
			added.List = append(added.List, p)
		}
	}
	if len(added.List) == 0 {
		return nil
	}
	return added
}

// mistake identifies a mistake by its item, its field and the beginning of its text: the names that there are follow.
func mistake(p limit.Problem) [3]string {
	item, _, _ := strings.Cut(p.Where, ", ")
	text, _, _ := strings.Cut(p.Text, ": ")
	return [3]string{item, p.Field, text}
}

// printMistakes prints an error with a line for each mistake behind what it is about.
func printMistakes(w io.Writer, what string, err error) {
	fmt.Fprintln(w, what)
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(w, "  %s\n", table.Printable(line)) // items may have any text
	}
}
