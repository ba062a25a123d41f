package alerts

import (
	"fmt"
	"strconv"
	"strings"
)

// proxy has the labels that Prometheus adds to the series of a proxy, in the test cases.
const proxy = `job="limitgate",instance="a"`

// ofJob are the labels of an alert about a job.
var ofJob = map[string]string{"job": "limitgate"}

// of returns the name of a proxy's series. The labels are its own, such as `shard="s"`.
func of(metric, labels string) string {
	if labels != "" {
		labels = "," + labels
	}
	return metric + "{" + proxy + labels + "}"
}

// hold returns the values of a gauge, as pairs of a value and a number of minutes.
func hold(pairs ...float64) string {
	var parts []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] > 0 {
			parts = append(parts, fmt.Sprintf("%s+0x%d", number(pairs[i]), int(pairs[i+1])-1))
		}
	}
	return strings.Join(parts, " ")
}

// grow returns the values of a counter, as pairs of an increase in a minute and a number of
// minutes.
func grow(pairs ...float64) string {
	total := 0.0
	var parts []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] > 0 {
			parts = append(parts, fmt.Sprintf("%s+%sx%d", number(total), number(pairs[i]), int(pairs[i+1])-1))
			total += pairs[i] * pairs[i+1]
		}
	}
	return strings.Join(parts, " ")
}

// number writes a number without an exponent, which the notation of promtool lacks.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
