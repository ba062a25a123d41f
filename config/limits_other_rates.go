package config

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// periodKeys are those of otherKeys whose values are periods. What a number means that has no unit depends on the key:
// an empty text says that it is not known.
var periodKeys = map[string]string{
	"window": "", "period": "", "interval": "", "per": "", "duration": "", "unit": "", "limitrefreshperiod": "",
	"windowms": "ms", "windowseconds": "s",
}

// otherRate returns the rate that a limit has in keys of other limiters, such as 100/60s, or "" if it has none that is
// clear. Others reports whether it has such keys.
func otherRate(n *yaml.Node) (rate string, others bool) {
	if n.Kind != yaml.MappingNode {
		return "", false
	}
	count, period := "", ""
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := folded(n.Content[i].Value)
		if otherKeys[key] != rateKey {
			continue
		}
		others = true
		value := resolveAlias(n.Content[i+1]).Value
		if unit, ok := periodKeys[key]; ok {
			period = periodOf(value, unit)
		} else {
			count = value
		}
	}
	rate = count + "/" + period
	if !limit.IsRate(rate) {
		return "", others
	}
	return rate, others
}

// periodOf returns a value of a key with its unit, as a rate has it. Words such as minute become their first letter.
func periodOf(value, unit string) string {
	switch word := strings.TrimSuffix(strings.ToLower(value), "s"); {
	case unit == "ms":
		seconds, whole := strings.CutSuffix(value, "000")
		if !whole || seconds == "" {
			return ""
		}
		return seconds + "s"
	case word == "second" || word == "minute" || word == "hour":
		return word[:1]
	}
	return value + unit
}
