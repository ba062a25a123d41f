package commands

import (
	"context"
	"strings"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// explainCommand replies with a map: the decision, every limit considered, and what is most likely a mistake in the
// request.
func explainCommand(_ context.Context, s *Session, args [][]byte) {
	var req limit.Request
	if errReply := s.parseCheck(args, &req, &options{}); errReply != "" {
		s.out.error(errReply)
		return
	}
	e := s.h.opts.Limiter.Explain(&s.batch, &req)
	d, set, r := &e.Decision, e.Set, &s.out
	r.mapping(12)
	r.pair("allowed", d.Allowed)
	r.pair("limit_id", d.LimitID())
	r.pair("limit", d.Limit)
	r.pair("remaining", d.Remaining)
	r.pair("retry_after_ms", d.RetryAfter)
	r.pair("source", d.Source.String())
	r.pair("tenant", req.Tenant)
	r.pair("plan", set.Plan(req.Tenant))
	r.pair("version", set.VersionFor(req.Tenant))
	r.bulk("limits")
	r.array(len(e.Limits))
	for i := range e.Limits {
		r.explained(&e.Limits[i])
	}
	r.warnings(RequestWarnings(&req, set, s.user.MayUse))
	r.pair("listed", set.Lists(req.Tenant))
	s.batch.Reset()
	clear(s.dims)
	s.dims = s.dims[:0]
}

// warnings appends a pair of them.
func (r *reply) warnings(texts []string) {
	r.bulk("warnings")
	r.array(len(texts))
	for _, text := range texts {
		r.bulk(text)
	}
}

func (r *reply) explained(e *limiter.Explained) {
	l := e.Limit
	r.mapping(22)
	r.pair("id", l.ID)
	r.pair("level", l.DescribeLevel())
	r.pair("applies", e.Applies)
	r.pair("reason", e.Reason)
	r.pair("from", originOf(l))
	r.pair("when", strings.Join(l.When(), ", "))
	r.pair("rate", l.Describe())
	r.pair("algorithm", l.Params.Algorithm.String())
	r.pair("capacity", l.Params.Capacity)
	r.pair("mode", l.DescribeMode())
	r.pair("warn", l.DescribeWarn())
	r.pair("on_error", e.OnError)
	r.pair("store", e.Store)
	r.pair("lease", e.Lease)
	if e.Item == nil {
		for _, name := range [...]string{"key", "field", "slot", "node", "allowed", "remaining", "wait_ms", "source"} {
			r.bulk(name)
			r.null()
		}
		return
	}
	it := e.Item
	own := it.Own()
	r.pair("key", string(it.Name[:it.KeyLen]))
	r.pair("field", string(it.Name[it.KeyLen:]))
	r.pair("slot", int64(it.HashSlot()))
	r.pair("node", e.Node)
	r.pair("allowed", own.Allowed)
	r.pair("remaining", it.Remaining)
	r.pair("wait_ms", own.Wait)
	r.pair("source", it.Source.String())
}

func originOf(l *limit.Limit) string {
	switch {
	case l.Tenant != "":
		return "override of " + l.Plan + " by " + l.Tenant
	case l.Plan != "":
		return "plan " + l.Plan
	default:
		return "shared"
	}
}

// lineOf returns the line of a limit in the file of its set, and 0 where the set is of a table.
func lineOf(set *limit.Set, l *limit.Limit) int64 {
	if strings.Contains(set.File, "://") {
		return 0
	}
	return int64(l.Line)
}

// limitsCommand replies with a map: version, source and the limits, all of them or those
// of one tenant with its plan, whether the limits list it, and warnings about its name.
func limitsCommand(_ context.Context, s *Session, args [][]byte) {
	if len(args) > 2 {
		s.out.error(s.h.wrongNumber("rl.limits", args))
		return
	}
	set := s.h.opts.Limiter.Limits()
	limits, version, tenant := set.All(), set.Version, ""
	if len(args) == 2 {
		tenant = string(args[1])
		if tenant == ownTenant {
			if tenant = s.user.Tenant(); tenant == "" {
				s.out.error(tenantRequired)
				return
			}
		}
		if err := limit.CheckName(tenant); err != nil {
			s.out.error(invalid("tenant", args[1], err))
			return
		}
		limits, version = set.TenantLimits(tenant), set.VersionFor(tenant)
	}
	r := &s.out
	if tenant == "" {
		r.mapping(3)
	} else {
		r.mapping(7)
		r.pair("tenant", tenant)
		r.pair("plan", set.Plan(tenant))
		r.pair("listed", set.Lists(tenant))
	}
	r.pair("version", version)
	r.pair("source", set.File)
	r.bulk("limits")
	r.array(len(limits))
	for _, l := range limits {
		r.mapping(11)
		r.pair("id", l.ID)
		r.pair("from", originOf(l))
		r.pair("line", lineOf(set, l))
		r.pair("level", l.DescribeLevel())
		r.pair("when", strings.Join(l.When(), ", "))
		r.pair("rate", l.Describe())
		r.pair("algorithm", l.Params.Algorithm.String())
		r.pair("capacity", l.Params.Capacity)
		r.pair("mode", l.DescribeMode())
		r.pair("warn", l.DescribeWarn())
		r.pair("on_error", l.OnError.String())
	}
	if tenant != "" {
		r.warnings(tenantWarnings(tenant, set, s.user.MayUse))
	}
}
