package envoy

import (
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// metadata describes the request for the filters behind: its domain, its descriptors, and the metadata
// of the rules that they passed. Of two values the first descriptor's wins.
func (q *question) metadata(req *rls.RateLimitRequest) *structpb.Struct {
	var all []*structpb.Value
	for _, d := range req.GetDescriptors() {
		all = append(all, structpb.NewStructValue(describe(d)))
	}
	m := &structpb.Struct{Fields: map[string]*structpb.Value{
		"domain":      structpb.NewStringValue(req.GetDomain()),
		"descriptors": structpb.NewListValue(&structpb.ListValue{Values: all}),
	}}
	if req.GetHitsAddend() > 0 {
		m.Fields["hitsAddend"] = structpb.NewNumberValue(float64(req.GetHitsAddend()))
	}
	merged := map[string]any{}
	for i := range q.bound {
		if b := &q.bound[i]; b.rule != nil && !b.over {
			merge(merged, b.rule.Metadata)
		}
	}
	if s, err := structpb.NewStruct(merged); err == nil && len(merged) > 0 {
		m.Fields["metadata"] = structpb.NewStructValue(s)
	}
	return m
}

// describe describes a descriptor.
func describe(d *ratelimit.RateLimitDescriptor) *structpb.Struct {
	var entries []*structpb.Value
	for _, e := range d.GetEntries() {
		entries = append(entries, structpb.NewStringValue(e.GetKey()+"="+e.GetValue()))
	}
	s := &structpb.Struct{Fields: map[string]*structpb.Value{"entries": structpb.NewListValue(&structpb.ListValue{Values: entries})}}
	if l := d.GetLimit(); l != nil {
		s.Fields["limit"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			"requestsPerUnit": structpb.NewNumberValue(float64(l.GetRequestsPerUnit())),
			"unit":            structpb.NewStringValue(l.GetUnit().String()),
		}})
	}
	if h := d.GetHitsAddend(); h != nil {
		s.Fields["hitsAddend"] = structpb.NewNumberValue(float64(h.GetValue()))
	}
	return s
}

// merge adds what to lacks of from, and merges maps.
func merge(to, from map[string]any) {
	for k, v := range from {
		was, found := to[k]
		if !found {
			if m, ok := v.(map[string]any); ok { // to gets a copy, which it may change
				own := map[string]any{}
				merge(own, m)
				v = own
			}
			to[k] = v
			continue
		}
		a, ok := was.(map[string]any)
		b, both := v.(map[string]any)
		if ok && both {
			merge(a, b)
		}
	}
}
