package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
)

// explanation says which limits one request meets, by a limits file or by a running limitgate.
type explanation struct {
	tenant, plan, version string
	unlisted              bool // the plan is that of tenants that are not listed
	verdict               string
	limits                []explainedLimit
	// running reports that it is of a running limitgate, which knows the units that are left and
	// the node of each bucket.
	running bool
}

// explainedLimit is a row of an explanation.
type explainedLimit struct {
	applies, wouldDeny                                                                                bool // wouldDeny is of a limit in shadow mode
	id, level, rate, algorithm, mode, onError, store, lease, why, remaining, limit, source, node, key string
}

// print prints the explanation as a table.
func (x *explanation) print(w io.Writer) {
	unlisted := ""
	if x.plan == "" {
		x.plan = "none"
	} else if x.unlisted {
		unlisted = " (the default)"
	}
	fmt.Fprintf(w, "tenant %s, plan %s%s, limits version %s\n%s\n", x.tenant, x.plan, unlisted, x.version, x.verdict)
	header := []string{"", "LIMIT", "LEVEL", "RATE", "ALGORITHM", "MODE", "ON_ERROR", "STORE", "LEASE", "WHY"}
	if x.running {
		header = append(header, "LEFT AFTER IT", "SOURCE", "NODE")
	}
	rows := [][]string{append(header, "KEY AND FIELD")}
	for _, l := range x.limits {
		mark, left := "", ""
		if l.applies {
			mark = "*"
		}
		switch {
		case l.source == limit.SourcePolicy.String(): // it fails closed: no bucket was read
			left = "-"
		case l.remaining != "":
			left = l.remaining + " of " + l.limit
		}
		if l.wouldDeny {
			l.why += ", would deny"
		}
		columns := []string{mark, l.id, l.level, l.rate, l.algorithm, l.mode, l.onError, l.store, l.lease, l.why}
		if x.running {
			columns = append(columns, left, l.source, l.node)
		}
		rows = append(rows, append(columns, l.key))
	}
	printColumns(w, rows)
}

// verdictText describes a decision in a line. Endless reports that the request can never succeed,
// since the limit admits no such cost.
func verdictText(allowed bool, id string, endless bool, cost int64) string {
	verdict := "admitted"
	if !allowed {
		verdict = "denied"
	}
	if id == "" && !allowed {
		return verdict + " by " + totalRate
	}
	if id == "" {
		return verdict + noLimit
	}
	if endless {
		verdict += fmt.Sprintf(" for ever, since a cost of %d is more than the limit admits", cost)
	}
	return verdict + ", bound by " + id
}

// noLimit ends the verdict on a request that no limit applies to, and noEnforced where some do in shadow mode.
const noLimit, noEnforced = ": no limit applies", ": no enforced limit applies"

// addAllowing adds to the verdict that a limit allows the request at every level.
func (x *explanation) addAllowing() {
	if begin, none := strings.CutSuffix(x.verdict, noLimit); none && x.allowing() != "" {
		x.verdict = begin + ": " + x.allowing() + " allows it"
	}
}

// allowing returns the first limit that allows the request at every level, or "".
func (x *explanation) allowing() string {
	i := slices.IndexFunc(x.limits, func(l explainedLimit) bool { return l.applies && l.why == limit.ReasonAllows })
	if i < 0 {
		return ""
	}
	return x.limits[i].id
}

// watches reports whether the limit applies and is in shadow mode.
func (l *explainedLimit) watches() bool {
	return l.applies && strings.HasPrefix(l.why, limit.ReasonWatches)
}

// refuses reports whether the limit is in shadow mode and refuses the request, whatever is in a bucket: by action: deny, or
// since the request lacks a dimension.
func (l *explainedLimit) refuses() bool {
	_, reason, _ := strings.Cut(l.why, limit.ReasonWatches+": ")
	return l.watches() && (reason == limit.ReasonRefuses || strings.HasPrefix(reason, limit.ReasonLacks))
}

// addShadow adds to the verdict that limits in shadow mode apply, and those that would deny.
func (x *explanation) addShadow() {
	var names []string
	for i := range x.limits {
		l := &x.limits[i]
		if !l.watches() {
			continue
		}
		if begin, none := strings.CutSuffix(x.verdict, noLimit); none {
			x.verdict = begin + noEnforced
		}
		if l.wouldDeny {
			names = append(names, l.id)
		}
	}
	if len(names) > 0 {
		x.verdict += "; in shadow mode " + strings.Join(names, ", ") + " would deny"
	}
}

// refusal returns the verdict on a request that lacks a dimension which the limit with the id demands, or "".
func (x *explanation) refusal(id string) string {
	for _, l := range x.limits {
		if l.applies && l.id == id && strings.HasPrefix(l.why, limit.ReasonLacks) {
			return "denied by " + id + ": the request has " + l.why
		}
	}
	return ""
}

// bans reports whether the limit with the id refuses the request by action: deny.
func (x *explanation) bans(id string) bool {
	return slices.ContainsFunc(x.limits, func(l explainedLimit) bool {
		return l.applies && l.id == id && l.why == limit.ReasonRefuses
	})
}

// totalRate describes the denial of a request that its limits admit.
const totalRate = "--backstop-total-rate, which bounds all tenants together where the store does not decide"

// failsClosed describes a limit that denies, as the store did not decide.
const failsClosed = "which fails closed, as the store did not decide"

// verdictOfReply describes the decision of a reply of RL.EXPLAIN in a line.
func verdictOfReply(reply any, retryAfter, cost int64) string {
	allowed, source := fieldText(reply, "allowed") == "1", fieldText(reply, "source")
	policy := source == limit.SourcePolicy.String()
	id := fieldText(reply, "limit_id")
	verdict := verdictText(allowed, id, retryAfter < 0 && !policy, cost)
	switch {
	case id == "":
	case policy && !allowed && retryAfter >= 0:
		return verdict + ", " + failsClosed
	case source == limit.SourceBackstop.String():
		return verdict + " (source backstop, for at least one limit, as the store did not decide)"
	}
	return verdict
}

// explanationOf describes an explanation of limits in this process. MadeUp reports that the
// secret that hashes addresses was generated for this run.
func explanationOf(req *limit.Request, x limiter.Explanation, madeUp bool) *explanation {
	d := &x.Decision
	endless := d.RetryAfter == bucket.Never && d.Binding != nil && d.Binding.Action == limit.ActionLimit
	out := &explanation{
		tenant: req.Tenant, plan: x.Set.Plan(req.Tenant), unlisted: !x.Set.Lists(req.Tenant), version: x.Set.Version,
		verdict: verdictText(d.Allowed, d.LimitID(), endless, req.Cost),
	}
	for i := range x.Limits {
		e := &x.Limits[i]
		row := explainedLimit{
			applies: e.Applies, id: e.Limit.ID, level: e.Limit.DescribeLevel(), rate: e.Limit.Describe(), algorithm: "-",
			mode: e.Limit.DescribeMode(), onError: e.Limit.OnError.String(), store: "-", lease: leaseOf(e), why: e.Reason, key: keyOf(e, madeUp),
		}
		if e.Limit.Action == limit.ActionLimit {
			row.algorithm, row.store = e.Limit.Params.Algorithm.String(), e.Limit.Store.String()
		}
		row.wouldDeny = row.refuses() || row.watches() && e.Item != nil && !e.Item.Verdict.Allowed
		out.limits = append(out.limits, row)
	}
	out.verdict = cmp.Or(out.refusal(d.LimitID()), out.verdict)
	out.addAllowing()
	out.addShadow()
	return out
}

// leaseOf describes the lease of a limit, or why it has no effect.
func leaseOf(e *limiter.Explained) string {
	if e.Unleased != "" {
		return e.Lease
	}
	return e.Limit.Lease.String()
}

// keyOf returns the key, and the field in it, under which the store keeps the bucket.
func keyOf(e *limiter.Explained, madeUp bool) string {
	switch {
	case e.Item == nil:
		return ""
	case e.Limit.Store == limit.PlacementLocal:
		return "none, kept in the proxy"
	}
	key := strings.TrimSpace(string(e.Item.Name[:e.Item.KeyLen]) + " " + string(e.Item.Name[e.Item.KeyLen:]))
	if madeUp && e.Limit.CountsHashes() {
		key += " (example hash)"
	}
	return key
}
