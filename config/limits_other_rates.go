package config

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// countKeys are those of otherKeys whose values are numbers of requests in a period that another key has.
var countKeys = []string{"limit", "requests", "max", "maxrequests", "count", "quota", "points", "permits", "limitforperiod", "requestsperunit"}

// periodKeys are those of otherKeys whose values are periods, with the unit of a number, or "" if a value has its own.
var periodKeys = map[string]string{
	"window": "", "windowsize": "", "period": "", "interval": "", "per": "", "duration": "", "unit": "", "limitrefreshperiod": "",
	"windowms": "ms", "windowseconds": "s",
}

// clearPeriod matches periods that mean the same in a rate.
var clearPeriod = regexp.MustCompile(`^([1-9][0-9]{0,8})?[smhd]$`)

// otherRate returns the rate that a limit has in keys of other limiters, such as 100/60s. It returns "" if there is
// none, or if it is not clear: it takes one number, one period and no other key of a rate.
func otherRate(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode || hasKey(n, "algorithm") && resolveAlias(valueOf(n, "algorithm")).Value == "concurrency" {
		return ""
	}
	count, period := "", ""
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := folded(n.Content[i].Value)
		if key == "rate" { // as a number alone, whose period is another key's
			key = "count"
		}
		if otherKeys[key] != rateKey {
			continue
		}
		to, value := &count, resolveAlias(n.Content[i+1]).Value
		if unit, ok := periodKeys[key]; ok {
			to, value = &period, periodOf(value, unit)
		} else if !slices.Contains(countKeys, key) {
			return ""
		}
		if *to != "" {
			return ""
		}
		*to = value
	}
	if rate := count + "/" + period; clearPeriod.MatchString(period) && limit.IsRate(rate) {
		return rate
	}
	return ""
}

// isDimension reports whether a value is a word as dimensions have, and no period.
func isDimension(n *yaml.Node) bool {
	value := resolveAlias(n)
	return value.Kind == yaml.ScalarNode && dimensionWord.MatchString(value.Value) && !clearPeriod.MatchString(periodOf(value.Value, ""))
}

var dimensionWord = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// hasRate reports whether a limit has a rate that is one.
func hasRate(n *yaml.Node) bool {
	rate := valueOf(resolveAlias(n), "rate")
	return rate != nil && limit.IsRate(resolveAlias(rate).Value)
}

// hasRefill reports whether a limit has a rate, or that of a bucket of other limiters, beside its capacity.
func hasRefill(n *yaml.Node) bool {
	return hasRate(n) || slices.ContainsFunc([]string{"refill", "refill_rate", "refillRate"}, func(key string) bool { return hasKey(resolveAlias(n), key) })
}

// hasOtherRate reports whether a limit has a key of other limiters in the place of its rate or its slots.
func hasOtherRate(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		if other := otherKeys[folded(n.Content[i].Value)]; other == rateKey || other == slotsKey {
			return true
		}
	}
	return false
}

// periodOf returns a value of a key with its unit, as a rate has it, or a text that is no period. Words such as minute
// become their first letter.
func periodOf(value, unit string) string {
	const none = "?"
	if unit == "ms" {
		seconds, whole := strings.CutSuffix(value, "000")
		if !whole || seconds == "" {
			return none
		}
		return seconds + "s"
	}
	if value == "" {
		return none
	}
	switch word := strings.TrimSuffix(strings.ToLower(value), "s"); word {
	case "second", "minute", "hour", "day":
		return word[:1]
	}
	return value + unit
}
