package envoy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/limit"
)

// explanation says how the descriptors of a request would be decided now.
type explanation struct {
	Domain      string               `json:"domain"`
	Admitted    bool                 `json:"admitted"`
	Note        string               `json:"note,omitempty"`
	Descriptors []explainedCondition `json:"descriptors"`
}

// explainedCondition is a descriptor, or a further limit of its rule, with its counter.
type explainedCondition struct {
	Descriptor string `json:"descriptor"`
	Rule       string `json:"rule,omitempty"`
	From       string `json:"from,omitempty"` // FILE:LINE
	Why        string `json:"why"`
	Limit      string `json:"limit,omitempty"`
	Mode       string `json:"mode,omitempty"`
	Key        string `json:"key,omitempty"` // in the store
	Admits     bool   `json:"admits"`
	Remaining  *int64 `json:"remaining,omitempty"`
	Source     string `json:"source,omitempty"` // of the verdict, if it is not the store
	// ResetSeconds is the time until the limit resets, or until the hits fit if they do not.
	ResetSeconds int64 `json:"reset_seconds,omitempty"`
}

// Explain answers a request as JSON takes, with an explanation: which rule each descriptor meets and why,
// which counter it has, and what is left there. It takes nothing.
func (s *Service) Explain(w http.ResponseWriter, r *http.Request) {
	var req rls.RateLimitRequest
	var x explanation
	err := readJSON(w, r, &req)
	if err == nil {
		err = checkRequest(&req, false)
	}
	if err == nil {
		x, err = s.explain(&req)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(x)
}

// explain explains a request, which has passed checkRequest. The error is errBusy.
func (s *Service) explain(req *rls.RateLimitRequest) (explanation, error) {
	x := explanation{Domain: req.GetDomain(), Admitted: true, Descriptors: []explainedCondition{}}
	if s.isNative(req.GetDomain()) {
		x.Note = "the domain is native: limitgate explain TENANT OP IP explains its checks"
		return x, nil
	}
	q := &question{req: req, behaviour: &s.opts.Behaviour, now: s.opts.Now()}
	s.resolve(q)
	if q.domain == nil {
		x.Note = fmt.Sprintf("there is no domain %.64q, so the request is admitted; %s", req.GetDomain(), someOf(s.config.Load().rules.Domains()))
		return x, nil
	}
	defer s.leave(q)
	if s.reserve(q, len(q.bound)); q.err != nil {
		return x, q.err
	}
	sources := s.look(q)
	q.sumUp()
	x.Admitted = !q.denies()
	for i := range q.bound {
		one := s.explainBound(q, req, i)
		one.Source = sources[i]
		x.Descriptors = append(x.Descriptors, one)
	}
	return x, nil
}

// someOf lists the first of the names of domains.
func someOf(domains []string) string {
	const most = 8
	listed := domains[:min(len(domains), most)]
	switch more := len(domains) - most; {
	case len(domains) == 0:
		return "there are no domains"
	case more > 0:
		return fmt.Sprintf("the domains are %s, and %d more", strings.Join(listed, ", "), more)
	default:
		return "the domains are " + strings.Join(listed, ", ")
	}
}

// sumUp makes descriptors over whose counter has not enough for them behind others of the request.
func (q *question) sumUp() {
	left := map[string]int64{}
	for _, r := range []role{roleCharge, roleTake} { // as they are decided
		for i := range q.bound {
			b := &q.bound[i]
			if b.role != r || b.limit == nil {
				continue
			}
			n, seen := left[b.counter]
			if !seen {
				n = b.remaining
			}
			if b.over = b.over || seen && (b.hits > n || n == 0); !b.over {
				n -= b.hits
			}
			left[b.counter] = n
		}
		for i := range q.bound { // those that are over take what is left, behind the others
			if b := &q.bound[i]; r == roleCharge && b.role == r && b.over {
				left[b.counter] = 0
			}
		}
	}
}

// look asks what the counters of a request would admit, and takes nothing. It returns the sources of the
// verdicts that are not the store's, by the numbers of their descriptors.
func (s *Service) look(q *question) (sources map[int]string) {
	sources = map[int]string{}
	q.denyClosed()
	for _, r := range []role{roleTake, roleCharge, roleRefund} {
		if q.collect(r); len(q.ask) == 0 {
			continue
		}
		q.batch.Reset()
		q.askEach()
		s.opts.Limiter.Peek(&q.batch)
		for i, n := range q.asked {
			b, it := &q.bound[n], &q.batch.Items(i)[0]
			if b.verdict(it); it.Allowed {
				b.remaining = min(b.remaining+it.Cost, b.limit.Params.Capacity)
			}
			b.over = b.over && r != roleRefund
			if it.Source != limit.SourceStore && it.Source != limit.SourceNone {
				sources[n] = it.Source.String()
			}
		}
	}
	return sources
}

// explainBound explains what a descriptor, or a further limit of one, would be decided by.
func (s *Service) explainBound(q *question, req *rls.RateLimitRequest, i int) explainedCondition {
	b, n := &q.bound[i], i
	if b.of > 0 {
		n = b.of - 1
	}
	d := req.GetDescriptors()[n]
	var entries []rlsconfig.Entry
	var words []string
	for _, e := range d.GetEntries() {
		entries = append(entries, rlsconfig.Entry{Key: e.GetKey(), Value: e.GetValue()})
		words = append(words, e.GetKey()+"="+e.GetValue())
	}
	x := explainedCondition{Descriptor: strings.Join(words, ","), Admits: !b.over}
	found := q.domain.Explain(entries)
	if r := found.Rule; r != nil {
		x.Rule, x.From, x.Mode = r.Path, fmt.Sprintf("%s:%d", r.File, r.Line), modeOf(b)
	}
	switch {
	case b.rule == nil && b.of == 0 && b.role != roleNone:
		x.Why = "it carries a limit, which takes the place of its rule"
	case found.Rule == nil:
		x.Why = found.Reason
	case b.unlimited:
		x.Why = "the rule is unlimited"
	case b.role == roleNone && found.Rule.Limit == nil:
		x.Why = "the rule has no limit"
	case b.role == roleNone:
		x.Why = "another limit of the request replaces it"
	case b.of > 0:
		x.Why = "further limit " + b.policy.name + " of the rule"
	default:
		x.Why = chosenBy(found.Choices)
	}
	if b.invalid {
		x.Why += "; the limit that it carries has a unit that does not exist"
	}
	if b.role != roleNone {
		x.Limit = b.policy.String()
		x.ResetSeconds = ceilSeconds(b.untilReset(q.now))
	}
	if b.limit != nil {
		x.Key, x.Remaining = string(limit.AppendDescriptorKey(nil, b.slot, b.counter)), &b.remaining
	}
	return x
}

// chosenBy describes the descriptors of the configuration that entries selected.
func chosenBy(choices []rlsconfig.Choice) string {
	var all []string
	for _, c := range choices {
		all = append(all, c.Element+" by its "+c.By)
	}
	return strings.Join(all, "; ")
}

// modeOf returns how a descriptor takes part in decisions.
func modeOf(b *bound) string {
	switch {
	case b.role == roleNone:
		return ""
	case b.shadow:
		return "shadow"
	case b.quota:
		return "quota"
	default:
		return "enforce"
	}
}

// String describes the policy, such as 10 per minute.
func (p *policy) String() string {
	unit := strings.ToLower(p.unit.String())
	if p.multiplier > 1 {
		unit = fmt.Sprintf("%d %ss", p.multiplier, unit)
	}
	return fmt.Sprintf("%d per %s", p.count, unit)
}
