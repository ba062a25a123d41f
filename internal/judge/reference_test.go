package judge

import (
	"github.com/limitgate/limitgate/internal/reference"
	"github.com/limitgate/limitgate/limit"
)

// referenceEngine answers by the reference.
type referenceEngine struct{}

func (referenceEngine) run(h *history) []answer {
	answers := make([]answer, len(h.steps))
	m, err := reference.New([]byte(h.files[0]))
	if err != nil {
		answers[0].err = err.Error()
		return answers[:1]
	}
	now := h.start
	for i := range h.steps {
		o := &h.steps[i]
		switch o.kind {
		case advance:
			now += o.by
		case reload:
			if err := m.SetLimits([]byte(h.files[o.file])); err != nil {
				answers[i].err = err.Error()
				return answers[:i+1]
			}
		default:
			answers[i] = askReference(m, now, o)
		}
	}
	return answers
}

func askReference(m *reference.Model, now int64, o *operation) answer {
	r := reference.Request{Tenant: o.tenant, Op: o.op, IP: o.ip, Cost: o.cost, ID: o.id}
	if len(o.dims) > 0 {
		r.Dims = map[string]string{}
	}
	for _, d := range o.dims {
		r.Dims[d.Name] = d.Value
	}
	switch o.kind {
	case check:
		return ofDecision(m.Check(now, r))
	case peek:
		return ofDecision(m.Peek(now, r))
	case reserve:
		return ofDecision(m.Reserve(now, r, o.ttl))
	case acquire:
		return ofDecision(m.Acquire(now, r, o.ttl))
	case refund:
		return answer{outcome: m.Refund(now, r)}
	case commit:
		return answer{outcome: m.Commit(now, o.tenant, o.id, o.units)}
	case cancel:
		return answer{outcome: m.Cancel(now, o.tenant, o.id)}
	case release:
		return answer{outcome: m.Release(now, o.tenant, o.id)}
	case renew:
		return answer{outcome: m.Renew(now, o.tenant, o.id, o.ttl)}
	default:
		m.Reset(o.tenant, o.limitID)
		return answer{}
	}
}

func ofDecision(d reference.Decision) answer {
	a := answer{
		decided: true, allowed: d.Allowed, limit: d.Limit, remaining: d.Remaining, retry: d.RetryAfter, full: d.ResetAfter,
		id: d.LimitID, source: limit.SourceStore,
	}
	if d.Policy {
		a.source = limit.SourcePolicy
	}
	return a
}
