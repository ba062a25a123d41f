package browser

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// writeLimits replaces a limits file by one with one limit.
func writeLimits(t *testing.T, path, rate string) {
	t.Helper()
	content := fmt.Sprintf("{version: 1, default_plan: p, plans: {p: [{id: calls, by: [tenant], rate: %s, on_error: open}]}}", rate)
	if err := os.WriteFile(path+".fresh", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".fresh", path); err != nil {
		t.Fatal(err)
	}
}

// contains waits until an element has a text.
func contains(id, text string) step {
	return until(fmt.Sprintf("document.getElementById(%q).innerText.includes(%q)", id, text))
}

// TestRollout watches a canary: the page shows how its limit changed, and which denials are those of
// tenants on trial.
func TestRollout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	writeLimits(t, path, "10/h")
	s := start(t, path, "--limits-canary", "50%", "--limits-canary-threshold", "100%")
	s.visit(t, s.admin)
	s.do(t, contains("rollout-about", "No limits are on trial. This proxy is in no cell: it enforces the whole of each limit."))
	if shown := eval[bool](t, s, `[...document.querySelectorAll("#rollout-trial, #rollout-cell")].some((e) => e.checkVisibility())`); shown {
		t.Error("the page shows a trial or a cell where there is none")
	}
	s.check(t, 1, "first", "-", "-")
	// The button of the limit is chosen by keys.
	s.do(t, chromedp.WaitVisible(`//table[@id="table-limits"]//button[text()="calls"]`), chromedp.Focus(`//table[@id="table-limits"]//button[text()="calls"]`), chromedp.KeyEvent(kb.Enter),
		contains("limit-title", "Limit calls"), contains("table-history", "no change"), contains("history-about", "Changes since this proxy started"))

	writeLimits(t, path, "2/h")
	s.do(t, contains("table-history", "on trial on 50 % of the tenants"), contains("table-history", "plan p: calls 10/h burst 10 -> 2/h burst 2"),
		contains("rollout-about", "is on trial on 50 % of the tenants"), contains("table-versions", "the other tenants"))
	for i := range 10 {
		s.check(t, 12, fmt.Sprint("tenant", i), "-", "-")
	}
	s.do(t, until(`document.querySelector("#table-trial").innerText.match(/on trial\s+\d+\s+[1-9]\d*\s+\d/)`), contains("table-denials", "on trial"))
	for range 3 { // a sample has one denial in ten milliseconds
		for i := range 10 {
			s.check(t, 12, fmt.Sprint("tenant", i), "-", "-")
		}
	}
	s.do(t, contains("table-denials", "in use"))

	// A scrolled history stays as it is while samples arrive.
	s.do(t, chromedp.Evaluate[chromedp.Void](`document.querySelector("#table-history tbody").dataset.kept = "yes"`))
	at := eval[string](t, s, `document.querySelector("#table-decisions tbody td").textContent`)
	s.do(t, until(fmt.Sprintf(`document.querySelector("#table-decisions tbody td").textContent !== %q`, at)))
	if kept := eval[bool](t, s, `document.querySelector("#table-history tbody").dataset.kept === "yes"`); !kept {
		t.Error("the history is written again without a change")
	}

	writeLimits(t, path, "{")
	s.do(t, contains("table-versions", "refused"), contains("alerts", "Newer limits are not in use"))
	writeLimits(t, path, "10/h")
	s.do(t, contains("table-history", "taken back"), contains("rollout-about", "No limits are on trial."))
	writeLimits(t, path, "4/h")
	s.do(t, contains("rollout-about", "is on trial"))
	s.examineAll(t)
	s.checkConsole(t)
}

// cellBody reads a stream of samples of a proxy outside cells as those of one in a cell.
type cellBody struct {
	io.Closer
	lines *bufio.Reader
	rest  string
}

// Read implements io.Reader.
func (b *cellBody) Read(to []byte) (n int, err error) {
	if b.rest == "" {
		b.rest, err = b.lines.ReadString('\n')
		b.rest = strings.Replace(b.rest, `"cell":{"name":"","active":0,"share":0}`, `"cell":{"name":"eu-central-1","active":3,"share":0.3333}`, 1)
	}
	n = copy(to, b.rest)
	b.rest = b.rest[n:]
	return n, err
}

// inCell serves the page of a limitgate as that of one in a cell, which would need a table of limits.
func inCell(t *testing.T, admin string) (addr string) {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: admin})
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of streams that end with their page
	proxy.ModifyResponse = func(reply *http.Response) error {
		if reply.Request.URL.Path == "/api/events" {
			reply.Body = &cellBody{reply.Body, bufio.NewReader(reply.Body), ""}
		}
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("/", proxy)
	mux.HandleFunc("/api/cells", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"limits":[{"limit":"calls","plan":"p","whole":"600/m","count":200,"capacity":400,"whole_capacity":1200},{"limit":"ip","plan":"","whole":"30/s","count":10,"capacity":10,"whole_capacity":30}],"more":7}`)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv.Listener.Addr().String()
}

// TestCell shows the parts of a cell.
func TestCell(t *testing.T) {
	s := start(t, "examples/limits.yaml")
	s.visit(t, inCell(t, s.admin))
	s.do(t, contains("rollout-about", "This proxy is in the cell eu-central-1. 3 active cells share the limits, and this one has 33.3 % of each."),
		contains("table-cell", "600/m"), contains("cell-more", "7 more limits are not in the table."))
	if got := strings.Fields(s.text(t, "#table-cell tbody")); strings.Join(got, " ") != "calls p 600/m 200 1,200 400 ip shared 30/s 10 30 10" {
		t.Errorf("the table has %q", got)
	}
	s.examineAll(t)
	s.checkConsole(t)
}
