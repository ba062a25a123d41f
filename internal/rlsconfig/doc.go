// Package rlsconfig reads the rate limit configuration of envoyproxy/ratelimit, the rate limit
// service for Envoy, from its files or from xDS, and answers which rule a descriptor of a request
// meets.
//
// Its guarantees:
//
// The same configurations. Parse accepts the files that envoyproxy/ratelimit loads, as YAML 1.1, and
// gives their keys the same meaning. It refuses rules that replace each other, share_threshold
// without a pattern in the value, tags of YAML other than !!str, and files beyond its bounds.
//
// All mistakes at once. Parse and DecodeXDS list every mistake with its place, and the same
// mistake has the same text in a file and in a resource. A configuration with a mistake is
// refused as a whole.
//
// Distinct names. Keys and values are compared as they are, never joined. Two counters have the
// same name only if their domain, their rule and the values that count are the same.
//
// A Config never changes. Match and AppendCounter allocate nothing.
package rlsconfig
