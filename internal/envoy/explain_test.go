package envoy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// TestExplain: an explanation names the rule and the counter of each descriptor, and what is left, and takes
// nothing.
func TestExplain(t *testing.T) {
	s := extended(t, memory.New(memory.Options{}), time.Second, extensions)
	ask(t, s, "b=x", 4)
	explain := func(body string) (x explanation, code int, text string) {
		t.Helper()
		w := httptest.NewRecorder()
		s.Explain(w, httptest.NewRequest(http.MethodPost, "/explain", strings.NewReader(body)))
		if w.Code == 200 {
			if err := json.Unmarshal(w.Body.Bytes(), &x); err != nil {
				t.Fatal(err)
			}
		}
		return x, w.Code, w.Body.String()
	}
	request := func(descriptors ...string) string {
		var all []string
		for _, d := range descriptors {
			var entries []string
			rest := ""
			for word := range strings.FieldsSeq(d) {
				key, value, _ := strings.Cut(word, "=")
				if key == "limit" {
					rest = `,"limit":{"requestsPerUnit":5,"unit":"HOUR"}`
					continue
				}
				entries = append(entries, fmt.Sprintf(`{"key":%q,"value":%q}`, key, value))
			}
			all = append(all, `{"entries":[`+strings.Join(entries, ",")+`]`+rest+`}`)
		}
		return `{"domain":"mesh","descriptors":[` + strings.Join(all, ",") + `]}`
	}
	for range 2 { // it takes nothing
		x, code, text := explain(request("a=1", "b=x", "free=1", "zzz=1", "zero=1", "vip=1", "remote_address=10.0.0.9", "c=1 limit=5", "exempt=1"))
		if code != 200 || x.Admitted || x.Domain != "mesh" {
			t.Fatalf("%d: %s", code, text)
		}
		var got []string
		for _, d := range x.Descriptors {
			left := "-"
			if d.Remaining != nil {
				left = fmt.Sprint(*d.Remaining)
			}
			got = append(got, fmt.Sprintf("%s | %s %s | %s | %s | %s %t %s", d.Descriptor, d.Rule, d.From, d.Limit, d.Why, d.Key, d.Admits, left))
		}
		want := []string{
			"a=1 | a rules.yaml:4 |  | another limit of the request replaces it |  true -",
			"b=x | b rules.yaml:6 | 3 per year | b by its key | lg:d:{mesh%3Bb:x%3B%3Bt} true 2",
			"free=1 | free rules.yaml:19 |  | the rule is unlimited |  true -",
			`zzz=1 |   |  | entry 1: there is no key "zzz"; there are keys "a", "b", "dark", "exempt", "free", "q1", "q2", "remote_address", and 2 more |  true -`,
			"zero=1 | zero rules.yaml:17 | 0 per year | zero by its key |  false -",
			"vip=1 | vip rules.yaml:21 | 100 per year | vip by its key | lg:d:{mesh%3Bvip:1} true 100",
			"remote_address=10.0.0.9 | remote_address rules.yaml:24 | 3 per year | remote_address by its key | lg:d:{mesh%3Bremote_address:h8%3B%3Bs} true 3",
			"c=1 |   | 5 per hour | it carries a limit, which takes the place of its rule | lg:d:{mesh%3B%3Bc:1%3B%3B3600} true 5",
			"exempt=1 | exempt rules.yaml:23 |  | the rule has no limit |  true -",
		}
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Errorf("descriptor %d:\ngot  %q\nwant %q", i, got[min(i, len(got)-1)], want[min(i, len(want)-1)])
			}
		}
	}
	if x, _, text := explain(request("a=2")); !x.Admitted || len(x.Descriptors) != 3 || x.Descriptors[1].Why != "further limit tight of the rule" || x.Descriptors[1].Limit != "2 per day" {
		t.Errorf("further limits: %s", text)
	}
	for body, want := range map[string]string{
		`{"domain":"other","descriptors":[{"entries":[{"key":"a","value":"1"}]}]}`: `there is no domain \"other\", so the request is admitted; the domains are mesh`,
		`{"domain":"","descriptors":[{}]}`:                                         "rate limit domain must not be empty; write for example " + ExampleJSON,
		`{`:                                                                        "parse request: ",
	} {
		if _, _, text := explain(body); !strings.Contains(text, want) {
			t.Errorf("%s: %s", body, text)
		}
	}
}

// explainText explains a request that ask would send.
func explainText(t *testing.T, s *Service, descriptors string, hits uint32) explanation {
	t.Helper()
	req := &rls.RateLimitRequest{Domain: "mesh", HitsAddend: hits}
	for text := range strings.SplitSeq(descriptors, ",") {
		req.Descriptors = append(req.Descriptors, descriptor(t, text))
	}
	x, err := s.explain(req)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestExplainAgrees: an explanation of a request says what its decision says next, also where descriptors share
// a counter, or carry a limit whose unit does not exist.
func TestExplainAgrees(t *testing.T) {
	s := extended(t, memory.New(memory.Options{}), time.Second, extensions)
	for _, c := range []struct {
		descriptors string
		admitted    bool
		why         string // of the last one
	}{
		{"b=1 hits=2,b=1", true, "b by its key"},
		{"b=1,b=1 hits=2,b=1", false, "b by its key"}, // 3 are left
		{"b=2 hits=6,b=2 hits=0", false, "b by its key"},
		{"b=3 hits=6", true, "b by its key"},
		{"q1=1,q1=1,q1=1", true, "q1 by its key"},
		{"q1=2 hits=2,q1=2", true, "q1 by its key"}, // one quota is left
		{"q1=3 hits=9,q1=3", false, "q1 by its key"},
		{"b=4 limit=5/99", true, "b by its key; the limit that it carries has a unit that does not exist"},
		{"b=4 refund=9", true, "b by its key"}, // which is never over
		{"zzz=4 limit=5/3", true, "it carries a limit, which takes the place of its rule"},
	} {
		x := explainText(t, s, c.descriptors, 0)
		if last := x.Descriptors[len(x.Descriptors)-1]; x.Admitted != c.admitted || c.admitted && strings.Contains(c.descriptors, "refund") && !last.Admits || last.Why != c.why {
			t.Errorf("%s: admitted %t, want %t: %+v", c.descriptors, x.Admitted, c.admitted, x)
		}
		if got := strings.HasPrefix(ask(t, s, c.descriptors, 0), "OK"); got != c.admitted {
			t.Errorf("%s: the decision is %t", c.descriptors, got)
		}
	}
	s.inProgress.Add(maxInProgress)
	if _, err := s.explain(&rls.RateLimitRequest{Domain: "mesh", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor(t, "b=1")}}); !errors.Is(err, errBusy) {
		t.Errorf("beside too many others: %v", err)
	}
}

// silent is a store that decides nothing.
type silent struct{ *memory.Store }

func (silent) Peek(limit.DecisionTime, []limit.Item, []limit.Call) {}

// TestExplainSource: an explanation marks what the backstop decides while the store is unavailable, and
// nothing else.
func TestExplainSource(t *testing.T) {
	store := memory.New(memory.Options{})
	for _, row := range []struct {
		store limiter.Store
		want  string
	}{{silent{store}, `"source": "backstop"`}, {store, ""}} {
		s := extended(t, row.store, time.Second, extensions)
		w := httptest.NewRecorder()
		s.Explain(w, httptest.NewRequest(http.MethodPost, "/explain", strings.NewReader(`{"domain":"mesh","descriptors":[{"entries":[{"key":"b","value":"x"}]}]}`)))
		if got := w.Body.String(); w.Code != 200 || strings.Contains(got, "source") != (row.want != "") || !strings.Contains(got, row.want) {
			t.Errorf("%d: %s", w.Code, got)
		}
	}
}

// TestExplainDomains: an explanation of an unknown domain names some of those that there are.
func TestExplainDomains(t *testing.T) {
	s := newService(t, Behaviour{})
	for n, want := range map[int]string{
		0:  "; there are no domains",
		2:  "; the domains are d0, d1",
		8:  "; the domains are d0, d1, d2, d3, d4, d5, d6, d7",
		10: "; the domains are d0, d1, d2, d3, d4, d5, d6, d7, and 2 more",
	} {
		var files []rlsconfig.File
		for i := range n {
			files = append(files, rlsconfig.File{Name: fmt.Sprint(i), Content: fmt.Appendf(nil, "domain: d%d\ndescriptors: [{key: a}]\n", i)})
		}
		c, problems := rlsconfig.Parse(files, rlsconfig.Options{})
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		s.SetConfig(c)
		if x := explainText(t, s, "a=1", 0); !strings.HasSuffix(x.Note, want) || x.Descriptors == nil {
			t.Errorf("%d domains: %s, want %s", n, x.Note, want)
		}
	}
}
