package capacity

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// NamedNumber is an input with its name for people.
type NamedNumber struct {
	Name string
	Number
}

// Numbers returns the numbers of the input, in the order of the report.
func (in *Input) Numbers() []NamedNumber {
	return []NamedNumber{
		{"requests a second, mean", in.RPS},
		{"requests a second, peak", in.PeakRPS},
		{"tenants", in.Tenants},
		{"values per tenant of other dimensions", in.Values},
		{"limits", in.Limits},
		{"highest rate of a bucket", in.TopRate},
		{"decided without the store", in.LocalShare},
		{"CPU of a master per call", in.CallCPU},
		{"more per further bucket in the tenant's string", in.FieldCPU},
		{"more per further bucket with its own key", in.KeyCPU},
		{"times, where a node encrypts in that thread", in.StoreTLS},
		{"CPU of a proxy per request", in.ProxyCPU},
		{"processors of a proxy", in.ProxyCores},
		{"target utilisation at the peak", in.Utilisation},
		{"replicas of a shard", in.Replicas},
		{"sent to the store per call", in.SentBytes},
		{"received from the store per call", in.ReceivedBytes},
		{"sent to each replica per call", in.ReplicaBytes},
		{"sent per further bucket", in.MoreSent},
		{"received per further bucket", in.MoreReceived},
		{"sent to each replica per further bucket", in.MoreReplicaBytes},
		{"calls that go to another zone", in.CrossZone},
		{"memory of a tenant's string with one bucket", in.StringBytes},
		{"memory per further bucket in it", in.FieldBytes},
		{"memory of a bucket with its own key", in.KeyBytes},
		{"usable part of a node's memory", in.UsableMemory},
		{"connections per proxy and shard", in.Connections},
		{"connections per node", in.MaxClients},
	}
}

// suffixes are the suffixes of ParseCount.
var suffixes = map[byte]float64{'k': 1e3, 'K': 1e3, 'M': 1e6, 'G': 1e9}

// ParseCount parses a number such as 50000, 50k, 1.5M or 2G. It may be out of the range of an input, and
// below zero.
func ParseCount(text string) (float64, error) {
	factor, digits := 1.0, text
	if n := len(text); n > 0 && suffixes[text[n-1]] > 0 {
		factor, digits = suffixes[text[n-1]], text[:n-1]
	}
	value, err := strconv.ParseFloat(digits, 64)
	if (err == nil || errors.Is(err, strconv.ErrRange)) && isDecimal(digits) { // out of range it is infinite
		return value * factor, nil
	}
	if part, ok := strings.CutSuffix(text, "%"); ok && isDecimal(part) {
		if percent, err := strconv.ParseFloat(part, 64); err == nil {
			return 0, fmt.Errorf("%.32q is a percentage: as a number it is %v", text, percent/100)
		}
	}
	return 0, fmt.Errorf("%.32q is not a number: write for example 50000, 50k or 1.5M", text)
}

// isDecimal reports whether text has digits, points and a sign alone: strconv takes other forms too.
func isDecimal(text string) bool {
	return strings.Trim(strings.TrimPrefix(text, "-"), "0123456789.") == ""
}

// roundUp returns the next whole number, with a tolerance for rounding errors of products, and at most
// the largest one that a float64 holds exactly, as all below it.
func roundUp(value float64) int { return int(min(math.Ceil(value-1e-6), 1<<53)) }

// count formats a number for people: at most three digits behind the point, and commas.
func count(value float64) string {
	text := strconv.FormatFloat(math.Round(value*1000)/1000, 'f', -1, 64)
	whole, fraction, _ := strings.Cut(text, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if fraction != "" {
		return whole + "." + fraction
	}
	return whole
}

// Dollars formats an amount for people, without cents from ten dollars on.
func Dollars(usd float64) string {
	sign := ""
	if usd < 0 {
		sign, usd = "-", -usd
	}
	if usd < 10 {
		return sign + "$" + strconv.FormatFloat(usd, 'f', 2, 64)
	}
	return sign + "$" + count(math.Round(usd))
}
