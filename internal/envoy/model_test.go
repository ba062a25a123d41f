package envoy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/grpcserver"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// model is what docs/envoy.md says of decisions, for limits that give no units back while a test runs.
type model struct {
	rules         []modelRule
	shadow, quota bool   // of all rules
	onDenied      string // of the domain
	used          map[string]int64
}

// modelRule is a rule of a random configuration.
type modelRule struct {
	caps                []int64 // units of the rule and of its further limits
	algorithm, onDenied string
	shadow, quota       bool
}

// modelQuestion is a descriptor of a random request.
type modelQuestion struct {
	rule     int // or -1 for one that carries a limit
	value    int
	own      string // hits, refund or nothing
	hits     int64
	over     bool
	counters []string
	caps     []int64
}

// newModel draws a configuration.
func newModel(random *rand.Rand) *model {
	words := []string{"", "", "nothing", "count"}
	m := &model{used: map[string]int64{}, shadow: random.IntN(10) == 0, quota: random.IntN(8) == 0, onDenied: words[random.IntN(4)]}
	for range 1 + random.IntN(5) {
		r := modelRule{caps: []int64{random.Int64N(8)}, shadow: random.IntN(5) == 0, quota: random.IntN(4) == 0}
		if r.caps[0] > 0 {
			r.algorithm, r.onDenied = []string{"", "token_bucket", "sliding_window"}[random.IntN(3)], words[random.IntN(4)]
			for range random.IntN(3) {
				r.caps = append(r.caps, 1+random.Int64N(8))
			}
		}
		m.rules = append(m.rules, r)
	}
	return m
}

// files returns the configuration and its extensions.
func (m *model) files(tenantKey string) (rules, extensions string) {
	rules, extensions = "domain: mesh\ndescriptors:\n", "version: 1\ndomains:\n  mesh:\n"
	line := func(format, value string) {
		if value != "" {
			extensions += fmt.Sprintf(format, value)
		}
	}
	line("    on_denied: %s\n", m.onDenied)
	line("    tenant_key: %s\n", tenantKey)
	extensions += "    rules:\n"
	for i, r := range m.rules {
		rules += fmt.Sprintf("- {key: k%d, shadow_mode: %t, quota_mode: %t, rate_limit: {unit: year, requests_per_unit: %d}}\n", i, r.shadow, r.quota, r.caps[0])
		if r.caps[0] == 0 {
			continue
		}
		extensions += fmt.Sprintf("      k%d:\n        also: [", i)
		for n, units := range r.caps[1:] {
			extensions += fmt.Sprintf("{id: n%d, rate: %d/300d%s},", n, units, []string{"", ", algorithm: token_bucket"}[n%2])
		}
		extensions += "]\n"
		line("        algorithm: %s\n", r.algorithm)
		line("        on_denied: %s\n", r.onDenied)
	}
	return rules, extensions
}

// draw draws a request.
func (m *model) draw(random *rand.Rand) (all []*modelQuestion, hits uint32) {
	hits = uint32(random.IntN(3))
	for range 1 + random.IntN(4) {
		q := &modelQuestion{rule: random.IntN(len(m.rules)+1) - 1, value: random.IntN(2), hits: max(1, int64(hits))}
		switch random.IntN(8) {
		case 0, 1:
			q.own, q.hits = "hits", 1+random.Int64N(9)
		case 2:
			q.own, q.hits = "hits", 0
		case 3:
			q.own, q.hits = "refund", random.Int64N(4)
		}
		if q.caps = []int64{3}; q.rule >= 0 {
			q.caps = m.rules[q.rule].caps
		}
		for i := range q.caps {
			q.counters = append(q.counters, fmt.Sprint(q.rule, " ", q.value, " ", i))
		}
		all = append(all, q)
	}
	return all, hits
}

// String writes the descriptor as ask reads it.
func (q *modelQuestion) String() string {
	text := fmt.Sprintf("own=%d limit=3/6", q.value)
	if q.rule >= 0 {
		text = fmt.Sprintf("k%d=%d", q.rule, q.value)
	}
	if q.own != "" {
		text += fmt.Sprintf(" %s=%d", q.own, q.hits)
	}
	return text
}

// role returns what a descriptor does: take, charge or refund.
func (m *model) role(q *modelQuestion) string {
	onDenied := m.onDenied
	if q.rule >= 0 && m.rules[q.rule].onDenied != "" {
		onDenied = m.rules[q.rule].onDenied
	}
	switch {
	case q.own == "refund":
		return "refund"
	case q.own == "hits" && q.hits == 0 || onDenied == "nothing" || q.own == "" && onDenied == "":
		return "take"
	default:
		return "charge"
	}
}

// mode returns how a descriptor takes part: shadow, quota or enforce.
func (m *model) mode(q *modelQuestion) string {
	switch {
	case m.shadow || q.rule >= 0 && m.rules[q.rule].shadow:
		return "shadow"
	case m.quota || q.rule >= 0 && m.rules[q.rule].quota:
		return "quota"
	default:
		return "enforce"
	}
}

// left returns the units that a counter has left.
func (m *model) left(q *modelQuestion, i int) int64 { return max(0, q.caps[i]-m.used[q.counters[i]]) }

// decide decides a request, and reports whether it is denied.
func (m *model) decide(all []*modelQuestion) bool {
	each := func(role string, do func(q *modelQuestion, i int)) {
		for _, q := range all {
			for i := range q.counters {
				if m.role(q) == role {
					do(q, i)
				}
			}
		}
	}
	var full [][2]any
	each("charge", func(q *modelQuestion, i int) {
		if q.hits <= m.left(q, i) {
			m.used[q.counters[i]] += q.hits
			return
		}
		q.over = true
		full = append(full, [2]any{q.counters[i], q.caps[i]})
	})
	for _, c := range full { // what was left, and nothing beyond the limit
		m.used[c[0].(string)] = max(m.used[c[0].(string)], c[1].(int64))
	}
	before := map[string]int64{}
	for name, n := range m.used {
		before[name] = n
	}
	each("take", func(q *modelQuestion, i int) {
		if q.hits > m.left(q, i) || q.hits == 0 && m.left(q, i) == 0 {
			q.over = true
		} else {
			m.used[q.counters[i]] += q.hits
		}
	})
	denied := m.denies(all)
	if denied {
		m.used = before
	}
	each("refund", func(q *modelQuestion, i int) { m.used[q.counters[i]] = max(0, m.used[q.counters[i]]-q.hits) })
	return denied
}

// denies reports whether a request is denied.
func (m *model) denies(all []*modelQuestion) bool {
	quotas, full := 0, 0
	for _, q := range all {
		switch mode := m.mode(q); {
		case m.role(q) == "refund" || mode == "shadow":
		case mode == "enforce" && q.over:
			return true
		case mode == "quota":
			if quotas++; q.over {
				full++
			}
		}
	}
	return quotas > 0 && quotas == full
}

// TestModel compares random requests by random configurations with the model, over memory and over Redis: the
// explanation before each, the answer, and what its counters have left.
func TestModel(t *testing.T) {
	node := redistest.Start(t)
	stores := map[string]limiter.Store{"memory": memory.New(memory.Options{}), "Redis": openStore(t, node.Addr)}
	seed := storetest.Seed(t)
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			for history := range 50 {
				m := newModel(random)
				s := serviceOf(t, store, m, fmt.Sprint(history), random)
				var told []string
				for range 25 {
					all, hits := m.draw(random)
					var words []string
					for _, q := range all {
						words = append(words, q.String())
					}
					text := strings.Join(words, ",")
					explained := explainText(t, s, text, hits)
					got, want := strings.HasPrefix(ask(t, s, text, hits), "OVER"), m.decide(all)
					told = append(told, fmt.Sprintf("%s (%d): denied %t", text, hits, want))
					if got != want || explained.Admitted == want || !m.agrees(t, s, all) {
						rules, extensions := m.files("")
						t.Fatalf("history %d: denied %t, want %t, explained %+v\nshadow %t, quota %t\n%s%s%s", history, got, want, explained, m.shadow, m.quota, rules, extensions, strings.Join(told, "\n"))
					}
				}
			}
		})
	}
}

// TestModelRounds compares rounds of random requests, which arrive together, with the model. Those that one call
// of the limiter decides come first.
func TestModelRounds(t *testing.T) {
	node := redistest.Start(t)
	stores := map[string]limiter.Store{"memory": memory.New(memory.Options{}), "Redis": openStore(t, node.Addr)}
	seed := storetest.Seed(t)
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			for history := range 40 {
				m := newModel(random)
				for i := range m.rules { // they do not count what others of the round hold for a moment
					m.rules[i].shadow = false
				}
				s := serviceOf(t, store, m, fmt.Sprint("rounds", history), random)
				for range 10 {
					m.checkRound(t, s, random)
				}
			}
		})
	}
}

// checkRound compares a random round with the model.
func (m *model) checkRound(t *testing.T, s *Service, random *rand.Rand) {
	t.Helper()
	var together, alone [][]*modelQuestion
	var texts []string
	calls := map[*modelQuestion]*grpcserver.Call{} // by the first question of a request
	var round []*grpcserver.Call
	for range 1 + random.IntN(12) {
		all, hits := m.draw(random)
		var words []string
		for _, q := range all {
			words = append(words, q.String())
		}
		texts = append(texts, fmt.Sprintf("%s (%d)", strings.Join(words, ","), hits))
		call := callOf(t, "mesh", strings.Join(words, ","), hits)
		calls[all[0]], round = call, append(round, call)
		q := question{}
		q.req, _ = q.parser.parse(call.Message)
		s.prepare(&q, s.opts.Now())
		s.leave(&q)
		if q.needsSeveralCalls() {
			alone = append(alone, all)
		} else {
			together = append(together, all)
		}
	}
	grpcserver.Unary(s.answerCalls).Answer(round)
	for _, all := range slices.Concat(together, alone) {
		got := describeCall(t, calls[all[0]])
		if want := m.decide(all); strings.HasPrefix(got, "OVER") != want {
			rules, extensions := m.files("")
			t.Fatalf("%v: %s, denied %t is right\nshadow %t, quota %t\n%s%s%s", all, got, want, m.shadow, m.quota, rules, extensions, strings.Join(texts, "\n"))
		}
	}
	for _, all := range slices.Concat(together, alone) {
		if !m.agrees(t, s, all) {
			rules, extensions := m.files("")
			t.Fatalf("after\n%s\nshadow %t, quota %t\n%s%s", strings.Join(texts, "\n"), m.shadow, m.quota, rules, extensions)
		}
	}
}

// serviceOf returns a service with the configuration of a model.
func serviceOf(t *testing.T, store limiter.Store, m *model, prefix string, random *rand.Rand) *Service {
	t.Helper()
	rules, extensions := m.files([]string{"", "k0", "own"}[random.IntN(3)])
	opts, err := rlsconfig.Options{Prefix: prefix}.WithExtensions("ext.yaml", []byte(extensions))
	if err != nil {
		t.Fatal(err)
	}
	c, problems := rlsconfig.Parse([]rlsconfig.File{{Name: "rules.yaml", Content: []byte(rules)}}, opts)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	l := limiter.New(limiter.Options{Store: store, Backstop: backstop.New(backstop.Options{}), Timeout: 5 * time.Second, DenyCacheSize: random.IntN(2) * 100},
		storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/366d"}))
	s := New(Options{Limiter: l, MayRefund: true, Behaviour: Behaviour{Shadow: m.shadow, Quota: m.quota}})
	s.SetConfig(c)
	return s
}

// agrees reports whether the counters of a request have left what the model says.
func (m *model) agrees(t *testing.T, s *Service, all []*modelQuestion) bool {
	t.Helper()
	for _, q := range all {
		least := m.left(q, 0)
		for i := range q.caps {
			least = min(least, m.left(q, i))
		}
		look := *q
		look.own, look.hits = "hits", 0
		status := ask(t, s, look.String(), 0)
		left, _, _ := strings.Cut(status[strings.LastIndexByte(status, ' ')+1:], "/")
		if left != strconv.FormatInt(least, 10) {
			t.Errorf("%s: %s, want %d", look.String(), status, least)
			return false
		}
	}
	return true
}
