package httpapi_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/httpapi"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
)

// wordKeeper is a handler that keeps the words of the last commands.
type wordKeeper struct {
	httpapi.Handler
	cmds [][][]byte
}

// Decide implements httpapi.Handler.
func (r *wordKeeper) Decide(u *users.User, peer netip.Addr, cmds [][][]byte, answers []commands.Answer) []commands.Answer {
	r.cmds = nil
	for _, cmd := range cmds { // their bytes are valid until the answer
		var kept [][]byte
		for _, word := range cmd {
			kept = append(kept, slices.Clone(word))
		}
		r.cmds = append(r.cmds, kept)
	}
	return r.Handler.Decide(u, peer, cmds, answers)
}

// TestTraceHeader checks where the trace of a caller becomes a dimension: only if the option asks for
// it, there is one trace, and no dimension that counts would be left out for it.
func TestTraceHeader(t *testing.T) {
	const one = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	const dim = " DIM traceparent " + one
	query := func(dims int) (q string) {
		for i := range dims {
			q += fmt.Sprintf("&dim.d%d=v", i)
		}
		return strings.TrimPrefix(q, "&")
	}
	body := func(dims int) string {
		var parts []string
		for i := range dims {
			parts = append(parts, fmt.Sprintf(`"d%d":"v"`, i))
		}
		return `{"tenant":"a","dims":{` + strings.Join(parts, ",") + `}}`
	}
	for name, row := range map[string]struct {
		option, target, body string
		traces               []string
		traced               int // how many of the requests
	}{
		"check":                {"traceparent", "/check", "", []string{one}, 1},
		"check, off":           {"", "/check", "", []string{one}, 0},
		"check, no header":     {"traceparent", "/check", "", nil, 0},
		"check, two headers":   {"traceparent", "/check", "", []string{one, one}, 0},
		"check, too long":      {"traceparent", "/check", "", []string{strings.Repeat("0", limit.MaxNameBytes+1)}, 0},
		"check, given":         {"traceparent", "/check?dim.traceparent=x", "", []string{one}, 0},
		"check, room":          {"traceparent", "/check?" + query(limit.MaxDims-3), "", []string{one}, 1},
		"check, no room":       {"traceparent", "/check?" + query(limit.MaxDims-2), "", []string{one}, 0},
		"JSON":                 {"traceparent", "/v1/check", body(2), []string{one}, 1},
		"JSON, off":            {"", "/v1/check", body(2), []string{one}, 0},
		"JSON, a list":         {"traceparent", "/v1/check", "[" + body(0) + "," + body(limit.MaxDims) + "," + body(1) + "]", []string{one}, 2},
		"JSON, given":          {"traceparent", "/v1/check", `{"tenant":"a","dims":{"traceparent":"x"}}`, []string{one}, 0},
		"JSON, no room":        {"traceparent", "/v1/check", body(limit.MaxDims), []string{one}, 0},
		"JSON, no such header": {"traceparent", "/v1/check", body(1), []string{""}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			h := &wordKeeper{Handler: newHandler(t, c, nil)}
			addr := serve(t, httpapi.Options{Handler: h, Now: c.now, TraceHeader: row.option})
			method := http.MethodGet
			if row.body != "" {
				method = http.MethodPost
			}
			req, err := http.NewRequest(method, "http://"+addr+row.target, strings.NewReader(row.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Original-URI", "/pay")
			req.Header.Set("X-Original-Method", "GET")
			req.Header["Traceparent"] = row.traces
			a, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = a.Body.Close()
			traced := 0
			for _, cmd := range h.cmds {
				var words []string
				for _, word := range cmd {
					words = append(words, string(word))
				}
				line := strings.Join(words, " ")
				traced += strings.Count(line, dim)
				if method == http.MethodGet && !strings.Contains(line, "DIM method GET DIM path /pay") {
					t.Errorf("%s", line)
				}
			}
			if a.StatusCode != http.StatusOK || traced != row.traced {
				t.Errorf("%s, %d traced, want %d: %q", a.Status, traced, row.traced, h.cmds)
			}
		})
	}
}
