package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
)

// planOf compiles shadow limits of a plan with a rate each, in the order of their ids, and tenants.
func planOf(t *testing.T, rates map[string]string, tenants string, ids ...string) *limit.Set {
	t.Helper()
	file := "version: 1\ndefault_plan: free\nplans:\n  free:\n"
	for i, id := range slices.Sorted(maps.Keys(rates)) {
		file += fmt.Sprintf("    - {id: %s, by: [tenant], rate: %s, group: g%d, mode: shadow}\n", id, rates[id], i)
	}
	set, _, err := config.ParseLimits("limits.yaml", []byte(file+tenants), limit.CompileOptions{IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// follow passes sets to a history, each compared before the next.
func follow(h *History, sets ...*limit.Set) {
	for _, set := range sets {
		h.Use(set)
		h.compare()
	}
}

// sentences writes the changes of a limit, one a line.
func sentences(h *History, id string) (all []string) {
	for _, c := range h.Of(id).Changes {
		all = append(all, fmt.Sprintf("%s->%s %s: %s +%d", c.From, c.To, c.Trial, strings.Join(c.Lines, "; "), c.More))
	}
	return all
}

// TestHistory checks the changes of each limit: those for all tenants, and those of trials that begin,
// grow, end, and are promoted.
func TestHistory(t *testing.T) {
	a := planOf(t, map[string]string{"one": "1/s", "two": "2/s"}, "")
	b := planOf(t, map[string]string{"one": "1/s", "two": "20/s"}, "")
	c := planOf(t, map[string]string{"one": "10/s", "two": "20/s"}, "tenants: {acme: {overrides: {one: {rate: 5/s}}}}\n", b.IDs...)
	h := NewHistory("limits.yaml", a)
	follow(h, b, b, b.Try(c, 500), b.Try(c, 2500), b, b.Try(c, 500), c)
	const lines = "plan free: one 1/s burst 1 -> 10/s burst 10; tenant acme: one 5/s burst 5, mode shadow, is new +0"
	for id, want := range map[string][]string{
		"two": {fmt.Sprintf("%s->%s : plan free: two 2/s burst 2 -> 20/s burst 20 +0", a.Version, b.Version)},
		"one": {
			fmt.Sprintf("%s->%s : %s", b.Version, c.Version, lines),
			fmt.Sprintf("%s->%s on trial on 5 %% of the tenants: %s", b.Version, c.Version, lines),
			fmt.Sprintf("%s->%s taken back: plan free: one 10/s burst 10 -> 1/s burst 1; tenant acme: one 5/s burst 5, mode shadow, is gone +0", c.Version, b.Version),
			fmt.Sprintf("%s->%s on trial on 25 %% of the tenants: %s", b.Version, c.Version, lines),
			fmt.Sprintf("%s->%s on trial on 5 %% of the tenants: %s", b.Version, c.Version, lines),
		},
		"other": nil,
	} {
		if got := sentences(h, id); !slices.Equal(got, want) {
			t.Errorf("%s has\n%s\nwant\n%s", id, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if n := h.Count(); n != 6 {
		t.Errorf("%d changes, want 6", n)
	}
	d := planOf(t, map[string]string{"one": "30/s", "two": "20/s"}, "", b.IDs...)
	h = NewHistory("limits.yaml", b)
	follow(h, b.Try(c, 500), b.Try(d, 500), b.Try(d, 500))
	follow(h, d)
	replaced := NewHistory("limits.yaml", b)
	follow(replaced, b.Try(c, 500), d)
	if got := replaced.Of("one").Changes; len(got) != 2 || got[0].Trial != "" || got[0].To != d.Version {
		t.Errorf("of a trial that other limits replace: %+v", got)
	}
	want := []string{
		fmt.Sprintf("%s->%s : plan free: one 1/s burst 1 -> 30/s burst 30 +0", b.Version, d.Version),
		fmt.Sprintf("%s->%s on trial on 5 %% of the tenants: plan free: one 1/s burst 1 -> 30/s burst 30 +0", b.Version, d.Version),
		fmt.Sprintf("%s->%s on trial on 5 %% of the tenants: %s", b.Version, c.Version, lines),
	}
	if got := sentences(h, "one"); !slices.Equal(got, want) || h.Count() != 3 {
		t.Errorf("of a trial that another one replaces on the same share:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestHistoryRun checks that Run compares sets that come into use, those together that come meanwhile,
// and that the time is that of the change.
func TestHistoryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := planOf(t, map[string]string{"one": "1/s"}, ""), planOf(t, map[string]string{"one": "2/s"}, ""), planOf(t, map[string]string{"one": "3/s"}, "")
		h := NewHistory("limits.yaml", a)
		time.Sleep(time.Hour)
		h.Use(b)
		h.Use(c)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.Run(ctx) }()
		synctest.Wait()
		if got, want := sentences(h, "one"), []string{fmt.Sprintf("%s->%s : plan free: one 1/s burst 1 -> 3/s burst 3 +0", a.Version, c.Version)}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		h.Use(a)
		synctest.Wait()
		if all := h.Of("one"); len(all.Changes) != 2 || all.Changes[1].At != all.Since.Add(time.Hour).UnixMilli() {
			t.Errorf("got %+v", all)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestHistoryBounds checks that no change keeps more than its lines, that all together have a bound too,
// and that changes of tenants do not push out those of plans.
func TestHistoryBounds(t *testing.T) {
	many := func(rate string) map[string]string {
		rates := map[string]string{}
		for i := range 1000 {
			rates[fmt.Sprintf("limit%04d", i)] = rate
		}
		return rates
	}
	slow, fast := planOf(t, many("1/s"), ""), planOf(t, many("2/s"), "")
	h := NewHistory("limits.yaml", slow)
	follow(h, fast)
	if got := sentences(h, "limit0000"); len(got) != 1 || !strings.HasSuffix(got[0], " 1/s burst 1 -> 2/s burst 2 +800") {
		t.Errorf("of a limit with a line: %q", got)
	}
	if got := sentences(h, "limit0999"); len(got) != 1 || !strings.HasSuffix(got[0], ":  +800") {
		t.Errorf("of a limit without a line: %q", got)
	}
	plan := map[string]string{"one": "1/s"}
	override := func(i int) *limit.Set {
		return planOf(t, plan, fmt.Sprintf("tenants: {acme%s: {overrides: {one: {rate: %d/s}}}}\n", strings.Repeat("e", 250), i+1))
	}
	follow(h, override(0))
	first := h.Count()
	for i := range keptLines + 100 {
		follow(h, override(i))
	}
	if n := h.Count() - first; n != keptLines+99 || h.lines > keptLines || h.lines < keptLines-mostLines {
		t.Errorf("%d changes, of which %d lines are kept", n, h.lines)
	}
	if got := sentences(h, "limit0000"); len(got) != 2 {
		t.Errorf("changes of plans were pushed out by those of tenants: %q", got)
	}
	if newest := h.Of("one").Changes[0]; !strings.HasSuffix(newest.Lines[0], fmt.Sprintf(" -> %d/s burst %d", keptLines+100, keptLines+100)) {
		t.Errorf("the newest change is %q", newest.Lines)
	}
	for range 2 * keptLines / mostLines {
		follow(h, slow, fast)
	}
	if got := h.Of("limit0000").Changes; h.lines != keptLines || len(got) != keptLines/mostLines || len(h.Of("one").Changes) != len(got) {
		t.Errorf("%d lines are kept, of %d changes", h.lines, len(got))
	}
	follow(h, override(0)) // which is a change of the plan too
	before := len(h.Of("limit0000").Changes)
	follow(h, override(1))
	if newest := h.Of("one").Changes[0]; len(newest.Lines) != 1 || !strings.HasSuffix(newest.Lines[0], " -> 2/s burst 2") || len(h.Of("limit0000").Changes) >= before {
		t.Errorf("beside many changes of plans the newest change of a tenant is %q", newest.Lines)
	}
	for _, long := range []string{strings.Repeat("é", mostBytes), "x" + strings.Repeat("é", mostBytes)} {
		h.add(&change{lines: []limit.Difference{{Limit: "x", Text: long}}})
		if got := h.Of("x").Changes[0].Lines[0]; len(got) > mostBytes || len(got) < mostBytes-1 || !strings.HasPrefix(long, got) || !utf8.ValidString(got) {
			t.Errorf("a long line has %d bytes: %q", len(got), got)
		}
	}
}

// TestHistoryKeepsNoFile checks that a line keeps nothing of the text that its id is a part of.
func TestHistoryKeepsNoFile(t *testing.T) {
	file := "a whole file with the id one in it"
	id := file[strings.Index(file, "one"):][:3]
	h := NewHistory("limits.yaml", nil)
	h.add(&change{lines: []limit.Difference{{Limit: id, Text: "one is new"}}})
	if kept := h.changes[0].lines[0].Limit; kept != "one" || unsafe.StringData(kept) == unsafe.StringData(id) {
		t.Errorf("%q is kept with its file", kept)
	}
}

// TestHistoryReply checks the reply of the page.
func TestHistoryReply(t *testing.T) {
	d, mux := newPage(t, "")
	follow(d.opts.History, storetest.Compile(t, storetest.Spec{ID: "few", By: []string{"tenant"}, Rate: "3/h"}))
	var got LimitHistory
	if w := get(mux, "/api/history?limit=few"); w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &got) != nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if len(got.Changes) != 1 || got.Source != "limits.yaml" || !slices.Equal(got.Changes[0].Lines, []string{"plan p: few 2/h burst 2 -> 3/h burst 3"}) {
		t.Errorf("got %+v", got)
	}
	if w := get(mux, "/api/history?limit=<b>"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "/api/limits lists them") {
		t.Errorf("of a limit that never was: %d %s", w.Code, w.Body)
	}
	if w := get(mux, "/api/history"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `{"error":"the id of a limit is missing`) {
		t.Errorf("without an id: %d %s", w.Code, w.Body)
	}
}

// TestCells checks the parts of a cell, their bound, and the reply outside cells.
func TestCells(t *testing.T) {
	d, mux := newPage(t, "")
	if body := get(mux, "/api/cells").Body.String(); body != "{\"limits\":[],\"more\":0}\n" {
		t.Errorf("outside cells: %s", body)
	}
	d.opts.CellLimits = func() []CellLimit {
		return slices.Repeat([]CellLimit{{Limit: "few", Plan: "p", Whole: "6/m", Count: 2, Capacity: 3, WholeCapacity: 9}}, mostCellLimits+7)
	}
	body := get(mux, "/api/cells").Body.String()
	if !strings.HasPrefix(body, `{"limits":[{"limit":"few","plan":"p","whole":"6/m","count":2,"capacity":3,"whole_capacity":9},`) || !strings.HasSuffix(body, "}],\"more\":7}\n") ||
		strings.Count(body, "few") != mostCellLimits {
		t.Errorf("%d limits: %.200s", strings.Count(body, "few"), body)
	}
}
