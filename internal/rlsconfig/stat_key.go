package rlsconfig

// StatKeys returns the texts of the first two levels of Path, the labels key1 and key2 of the
// metrics of envoyproxy/ratelimit. A rule of one level has no key2.
func (r *Rule) StatKeys() (key1, key2 string) {
	if len(r.steps) > 1 {
		key2 = r.steps[1].element
	}
	return r.steps[0].element, key2
}

// StatKeysVary reports whether values of requests are part of the first two levels of the stat
// key, see AppendStatKey.
func (r *Rule) StatKeysVary() bool {
	for i := range min(len(r.steps), 2) {
		if r.varies(i) {
			return true
		}
	}
	return false
}

// AppendStatKey appends the text of a level, from 0, of the rule's stat key for entries, which must
// be those for which Match returned the rule. The text differs from that of Path where
// detailed_metric or value_to_metric ask for the value of the request.
func (r *Rule) AppendStatKey(dst []byte, level int, entries []Entry) []byte {
	if !r.varies(level) {
		return append(dst, r.steps[level].element...)
	}
	dst = append(dst, entries[level].Key...)
	if entries[level].Value != "" {
		dst = append(append(dst, '_'), entries[level].Value...)
	}
	return dst
}

// varies reports whether the value of the request is part of a level. An address is in no metric.
func (r *Rule) varies(level int) bool {
	s := &r.steps[level]
	return !s.address && s.kind != exactValue && !s.shared && (r.DetailedMetric || s.metered)
}
