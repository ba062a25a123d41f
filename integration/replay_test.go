package integration

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

// opOfLog is the op of the lines of accessLog.
const opOfLog = "{method} {path:2}"

// accessLog writes a log of n lines: few addresses make many requests, many make few, and
// the seconds of neighbouring lines are shuffled as in logs of several processes.
func accessLog(tb testing.TB, n int) string {
	tb.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for i := range n {
		stamp := at.Add(time.Duration(i)*200*time.Millisecond + time.Duration(random.IntN(20))*time.Second)
		host := int(random.ExpFloat64() * 1000)
		fmt.Fprintf(&b, "198.18.%d.%d - - [%s] \"GET /shop/item%d/%d HTTP/1.1\" 200 10 \"-\" \"test\"\n",
			host/250%250, host%250, stamp.Format("02/Jan/2006:15:04:05 -0700"), int(random.ExpFloat64()*10), i)
	}
	b.WriteString("this line does not parse\n")
	path := filepath.Join(tb.TempDir(), "access.log")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		tb.Fatal(err)
	}
	return path
}

type replayReport struct {
	Requests   int64 `json:"requests"`
	Admitted   int64 `json:"admitted"`
	Denied     int64 `json:"denied"`
	OutOfOrder int64 `json:"out_of_order"`
	Unparsed   int64 `json:"unparsed"`
	Limits     []struct {
		ID        string `json:"id"`
		Requests  int64  `json:"requests"`
		Admitted  int64  `json:"admitted"`
		Denied    int64  `json:"denied"`
		WouldDeny int64  `json:"would_deny"`
	} `json:"limits"`
}

func replay(tb testing.TB, args ...string) replayReport {
	tb.Helper()
	out, errs, code := run(tb, nil, append([]string{"replay", "--json"}, args...)...)
	if code != 0 {
		tb.Fatalf("replay %v: exit %d: %s", args, code, errs)
	}
	var r replayReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		tb.Fatalf("replay %v: %v in %s", args, err, out)
	}
	return r
}

// TestReplayEqual: budgets that hardly refill give equal counts for each limit, to the
// unit, in memory on a frozen clock and through a proxy on a cluster of six nodes, as
// fast as it replies on one connection.
func TestReplayEqual(t *testing.T) {
	const budget = "../examples/replay-budget.yaml"
	c := redistest.SharedCluster(t)
	c.FlushAll(t)
	log := accessLog(t, 8000)
	local := replay(t, "--frozen", "--op", opOfLog, "--limits", budget, log)
	p := serve(t, budget, append(exact, "--deny-cache-size", "0", "--redis", strings.Join(c.Addrs(), ","))...)
	remote := replay(t, "--against", p.addr, "--op", opOfLog, "--limits", budget, log)
	if fmt.Sprint(local) != fmt.Sprint(remote) {
		t.Errorf("in memory:\n%+v\nthrough a cluster:\n%+v", local, remote)
	}
	if local.Requests != 8000 || local.Unparsed != 1 || local.OutOfOrder == 0 || local.Denied == 0 {
		t.Errorf("got %+v", local)
	}
	for _, l := range local.Limits {
		if l.Denied == 0 {
			t.Errorf("%s denied nothing: the log does not test it", l.ID)
		}
	}
	redistest.AssertAllKeysExpire(t, c.Masters(t)...)
}

// TestReplayCompare: a comparison reports the changes that a stricter file would make.
func TestReplayCompare(t *testing.T) {
	log := accessLog(t, 500)
	loose := writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant], rate: 400/366d}]}}")
	tight := writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant], rate: 100/366d}]}}")
	out, errs, code := run(t, nil, "replay", "--limits", loose, "--compare", tight, log)
	if code != 0 || !strings.Contains(out, "500 requests: 300 newly denied, 0 newly admitted") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// TestReplayAgainstWithoutTenant: a replay against a proxy says what it lacks where a line has no tenant, and asks nothing.
func TestReplayAgainstWithoutTenant(t *testing.T) {
	file := writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant], rate: 400/366d}]}}")
	p := serve(t, file)
	_, errs, code := run(t, nil, "replay", "--against", p.addr, "--limits", file, "--tenant", "{query:key}", accessLog(t, 10))
	const want = "limitgate: a line of the log has no value for --tenant, and a proxy takes no tenant -: write text in front of the field, such as --tenant 'key-{query:key}'\n"
	if code != 1 || errs != want {
		t.Errorf("exit %d: %s, want %s", code, errs, want)
	}
}

// TestReplayAgainstAnotherFile: a replay against a proxy with other limits than the file warns of the limits that
// decided nothing.
func TestReplayAgainstAnotherFile(t *testing.T) {
	p := serve(t, writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant], rate: 400/366d}]}}"))
	file := writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: b, by: [tenant], rate: 100/366d}]}}")
	out, errs, code := run(t, nil, "replay", "--against", p.addr, "--limits", file, accessLog(t, 500))
	if code != 0 || !strings.Contains(out, ": limits of the file that the proxy does not have decided nothing, whatever the table shows\n") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// TestReplayAgainstRefusals: requests that lack a dimension of a limit with missing: deny are none that were decided without the store.
func TestReplayAgainstRefusals(t *testing.T) {
	file := writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant, key], rate: 400/366d, missing: deny}]}}")
	p := serve(t, file)
	out, errs, code := run(t, nil, "replay", "--against", p.addr, "--limits", file, accessLog(t, 10))
	const lacking = "WARNING: 10 of 10 were denied for want of key, without which a denies (missing: deny): no other limit counts them\n"
	if code != 0 || strings.Contains(out+errs, "without the store") || !strings.Contains(out, "0 admitted") || !strings.Contains(out, lacking) || strings.Contains(out, "deny nothing") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// TestReplaySorted: requests are decided in the order of time, whatever that of the log is; a log
// that is further out of order than the window is refused, and sorted as a whole with --sort.
func TestReplaySorted(t *testing.T) {
	var forward, backward, tooFar strings.Builder
	const lines = 200
	begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	line := func(b *strings.Builder, second int) {
		fmt.Fprintf(b, "198.18.0.1 - - [%s] \"GET / HTTP/1.1\" 200 10\n", begin.Add(time.Duration(second)*time.Second).Format("02/Jan/2006:15:04:05 -0700"))
	}
	for i := range lines {
		line(&forward, i)
		line(&backward, lines-1-i)
	}
	for range 200_000 {
		line(&tooFar, 3600)
	}
	line(&tooFar, 3600)
	line(&tooFar, 0)
	limits := writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant], rate: 1/s, burst: 1}]}}")
	write := func(content string) string {
		path := filepath.Join(t.TempDir(), "access.log")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := replay(t, "--limits", limits, write(forward.String())), replay(t, "--limits", limits, write(backward.String()))
	if a.Denied != 0 || b.Denied != 0 || a.OutOfOrder != 0 || b.OutOfOrder != lines-1 || b.Requests != lines {
		t.Errorf("forward:\n%+v\nbackward:\n%+v", a, b)
	}
	far := write(tooFar.String())
	_, errs, code := run(t, nil, "replay", "--limits", limits, far)
	if code != 1 || !strings.Contains(errs, "the log is not in the order of time: line 200002 is of 2026-03-01T10:00:00Z") || !strings.Contains(errs, "--sort") {
		t.Errorf("too far out of order: exit %d: %s", code, errs)
	}
	if r := replay(t, "--limits", limits, "--sort", far); r.Requests != 200_002 || r.Admitted != 2 {
		t.Errorf("sorted: %+v", r)
	}
}

// TestSuggest: the limits that are suggested for a log deny nothing of it when they are enforced, and
// the rate that is said to deny a hundredth, as a fixed window, denies no more and nearly as much.
func TestSuggest(t *testing.T) {
	const requests = 5000
	log := accessLog(t, requests)
	out, errs, code := run(t, nil, "limits", "suggest", log)
	if code != 0 || strings.Count(out, "mode: shadow") != 3 {
		t.Fatalf("exit %d:\n%s%s", code, out, errs)
	}
	enforced, picture := writeLimits(t, strings.ReplaceAll(out, "mode: shadow", "mode: enforce")), filepath.Join(t.TempDir(), "t.svg")
	if r := replay(t, "--limits", enforced, "--svg", picture, log); r.Denied != 0 || r.Requests != requests {
		t.Errorf("of the log that they are made from they deny %+v", r)
	}
	svg, err := os.ReadFile(picture)
	if err != nil || strings.Count(string(svg), `class="title"`) != 3 || strings.Contains(string(svg), `class="over"`) || strings.Contains(string(svg), "%!") || xml.Unmarshal(svg, new(struct{})) != nil {
		t.Errorf("the timeline of three limits that deny nothing: %v\n%.2000s", err, svg)
	}
	var busiest, thousandth, hundredth int
	_, ip, _ := strings.Cut(out, "shared:")
	begin, rates, _ := strings.Cut(strings.TrimSpace(ip), ";")
	if _, err := fmt.Sscanf(begin+rates, "# %d in the busiest minute, 2026-03-01 10:%dZ in fixed windows %d/m would deny at most 0.1 %% of the requests, %d/m", &busiest, new(int), &thousandth, &hundredth); err != nil {
		t.Fatalf("%v in %s", err, ip)
	}
	deniedBy := func(rate int) int64 {
		return replay(t, "--limits", writeLimits(t, fmt.Sprintf("{version: 1, shared: [{id: ip, by: [ip], rate: %d/m, algorithm: fixed_window}]}", rate)), log).Denied
	}
	if at, below := deniedBy(hundredth), deniedBy(hundredth-1); at > requests/100 || below <= requests/100 {
		t.Errorf("%d/m denies %d of %d, and one less %d", hundredth, at, requests, below)
	}
	if deniedBy(busiest) != 0 || deniedBy(busiest-1) == 0 {
		t.Errorf("%d is not the busiest minute", busiest)
	}
}
