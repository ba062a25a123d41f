package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/dashboard"
)

// historyOf returns the history of a limit as the page of a proxy receives it.
func historyOf(t *testing.T, p *proxy, id string) (h dashboard.LimitHistory) {
	t.Helper()
	if body := p.get("/api/history?limit=" + url.QueryEscape(id)); json.Unmarshal([]byte(body), &h) != nil {
		t.Fatalf("the history of %s is %s", id, body)
	}
	return h
}

// changesOf waits until a limit has so many changes, and returns them, the newest first.
func changesOf(t *testing.T, p *proxy, id string, n int) (all []string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d changes of %s", n, id), func() bool {
		all = nil
		for _, c := range historyOf(t, p, id).Changes {
			all = append(all, strings.TrimPrefix(c.Trial+": ", ": ")+strings.Join(c.Lines, "; "))
		}
		return len(all) == n
	})
	return all
}

// openPage opens the stream of a proxy's page, which ends with the test at the latest.
func openPage(t *testing.T, p *proxy) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.admin+"/api/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// nextSample returns the next sample of a page's stream.
func nextSample(in *bufio.Reader) (*dashboard.Sample, error) {
	for event := ""; !strings.HasPrefix(event, "event: sample"); {
		var err error
		if event, err = in.ReadString('\n'); err != nil {
			return nil, err
		}
	}
	line, _ := in.ReadString('\n')
	var s dashboard.Sample
	if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &s); err != nil {
		return nil, fmt.Errorf("read sample %s: %w", line, err)
	}
	return &s, nil
}

// sampleOf returns the first sample of a proxy's page that the test accepts.
func sampleOf(t *testing.T, p *proxy, ok func(*dashboard.Sample) bool) *dashboard.Sample {
	t.Helper()
	reply := openPage(t, p)
	defer func() { _ = reply.Body.Close() }()
	in := bufio.NewReader(reply.Body)
	for range 30 { // seconds
		s, err := nextSample(in)
		if err != nil {
			t.Fatal(err)
		}
		if ok(s) {
			return s
		}
	}
	t.Fatal("no sample is as it should be")
	return nil
}

// TestPageOfCanary: the page shows how a limit of a file changed, limits on trial beside those in use,
// and which denials are theirs, as RL.DENIED and limitgate denied do.
func TestPageOfCanary(t *testing.T) {
	const share = 2500
	path := writeLimits(t, limitOf("10/h"))
	p := serve(t, path, append([]string{"--limits-canary", "25%", "--limits-canary-threshold", "100%"}, exact...)...)
	c := p.client()
	in, out := cohorts(share)
	first := sampleOf(t, p, func(*dashboard.Sample) bool { return true })
	if first.Trial.Version != "" || first.Cell.Name != "" || first.Limits.Changes != 0 {
		t.Errorf("at first: %+v %+v %+v", first.Limits, first.Trial, first.Cell)
	}
	replace(t, path, limitOf("2/h"))
	eventually(t, "the trial of 2/h", func() bool { return limitOfTenant(t, c, in) == 2 })
	ask(t, c, in, 20)
	eventually(t, "a denial of the others in the sample", func() bool { // which has one in ten milliseconds
		ask(t, c, out, 20)
		return strings.Contains(asText(c.Do(t.Context(), "RL.DENIED").Val()), out+" ")
	})
	s := sampleOf(t, p, func(s *dashboard.Sample) bool { return s.Trial.Requests > 20 && s.Limits.Changes == 1 })
	if tr := s.Trial; tr.Version == s.Limits.Version || tr.Share != "25 % of the tenants" || tr.Denied != tr.Requests-2 || tr.DeniedBefore != tr.Requests-10 ||
		tr.Threshold != 1 || !tr.Since.After(s.Limits.Since) {
		t.Errorf("the trial is %+v, beside %+v", tr, s.Limits)
	}
	if len(s.LastDenials) < 2 {
		t.Errorf("the page has the denials %+v", s.LastDenials)
	}
	for _, d := range s.LastDenials {
		if d.Trial != (d.Tenant == in) {
			t.Errorf("got the denial %+v, and %s is on trial", d, in)
		}
	}
	table, errs, code := run(t, nil, "denied", "--addr", p.addr)
	for _, line := range strings.Split(table, "\n") {
		if words := strings.Fields(line); slices.Contains(words, in) != strings.Contains(line, "on trial") || slices.Contains(words, out) != strings.Contains(line, "in use") {
			t.Errorf("limitgate denied prints %s", line)
		}
	}
	if code != 0 || !strings.Contains(table, "on trial") {
		t.Errorf("limitgate denied: exit %d\n%s%s", code, table, errs)
	}
	if err := c.Do(t.Context(), "RL.CONFIG", "ABORT").Err(); err != nil {
		t.Fatal(err)
	}
	changesOf(t, p, "a", 2)
	replace(t, path, limitOf("3/h"))
	changesOf(t, p, "a", 3)
	if err := c.Do(t.Context(), "RL.CONFIG", "PROMOTE").Err(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"plan p: a 10/h burst 10 -> 3/h burst 3", "on trial on 25 % of the tenants: plan p: a 10/h burst 10 -> 3/h burst 3",
		"taken back: plan p: a 2/h burst 2 -> 10/h burst 10", "on trial on 25 % of the tenants: plan p: a 10/h burst 10 -> 2/h burst 2",
	}
	if got := changesOf(t, p, "a", 4); !slices.Equal(got, want) {
		t.Errorf("the history is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	h := historyOf(t, p, "a")
	if newest := h.Changes[0]; h.Source != path || newest.From != first.Limits.Version || newest.To == newest.From || newest.To != h.Changes[1].To {
		t.Errorf("got %+v", h)
	}
	replace(t, path, "{")
	if s := sampleOf(t, p, func(s *dashboard.Sample) bool { return s.Limits.Error != "" }); s.Limits.Version != h.Changes[0].To || s.Trial.Version != "" {
		t.Errorf("with a file that is refused: %+v %+v", s.Limits, s.Trial)
	}
}

// TestPageOfTable: the page shows how limits of a table changed, the trial of a revision, and the part
// of the cell.
func TestPageOfTable(t *testing.T) {
	t.Parallel()
	s, _ := tried(t)
	flags := []string{"--cells", "cells", "--rollout-gate", gateName}
	s.controlPlane(flags...)
	proxies := []*proxy{}
	for _, id := range []string{"a", "b"} {
		proxies = append(proxies, s.serve(filepath.Join(t.TempDir(), "snapshot"), "--cells-id", id, "--cells-table", "cells", "--rollout-gate", gateName))
	}
	p := proxies[0]
	parts(t, "beta", proxies, 100, 100) // of 200, on trial
	shown := sampleOf(t, p, func(s *dashboard.Sample) bool { return s.Trial.Version != "" && s.Cell.Active == 2 })
	if shown.Trial.Version != "revision 1" || shown.Trial.Share != "100 % of the tenants" || shown.Cell.Name != "a" || shown.Cell.Share != 0.5 {
		t.Errorf("got %+v and %+v", shown.Trial, shown.Cell)
	}
	var cells struct{ Limits []dashboard.CellLimit }
	if body := p.get("/api/cells"); json.Unmarshal([]byte(body), &cells) != nil {
		t.Fatal(body)
	}
	for _, want := range []dashboard.CellLimit{
		{Limit: "tenant", Plan: "free", Whole: "100/s", Count: 50, Capacity: 50, WholeCapacity: 100},
		{Limit: "tenant", Plan: "gold", Whole: "1000/s", Count: 500, Capacity: 500, WholeCapacity: 1000},
	} {
		if !slices.Contains(cells.Limits, want) {
			t.Errorf("the cell has %+v, want %+v", cells.Limits, want)
		}
	}
	s.rollOut(0, "promote", "--cells", "cells", tableURL)
	const promoted = "plan free: tenant 100/s burst 100, 50 of it in this cell -> 200/s burst 200, 100 of it in this cell"
	eventually(t, "the promotion in the history", func() bool {
		all := historyOf(t, p, "tenant")
		return len(all.Changes) > 0 && all.Source == tableURL && slices.Equal(all.Changes[0].Lines, []string{promoted}) && all.Changes[0].Trial == ""
	})
	before := len(historyOf(t, p, "tenant").Changes)
	s.push(tableLimits(t, "acme: {plan: gold, overrides: {tenant: {rate: 20/s}}}"), "ann", "--removes", "9")
	eventually(t, "the override in the history", func() bool {
		return slices.ContainsFunc(historyOf(t, p, "tenant").Changes, func(c dashboard.LimitChange) bool {
			return slices.Contains(c.Lines, "tenant acme: tenant 1000/s burst 1000, 500 of it in this cell -> 20/s burst 20, 10 of it in this cell")
		})
	})
	if all := historyOf(t, p, "tenant").Changes; len(all) <= before {
		t.Errorf("%d changes, after %d", len(all), before)
	}
}
