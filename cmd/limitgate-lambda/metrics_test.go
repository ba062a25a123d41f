package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane"
)

// document is a document of the format with the members that the specification allows,
// beside targets.
type document struct {
	AWS *struct {
		Timestamp         *int64
		CloudWatchMetrics []struct {
			Namespace  *string
			Dimensions [][]string
			Metrics    []struct {
				Name *string
				Unit string
			}
		}
	} `json:"_aws"`
}

// units are those of CloudWatch, as the specification's schema has them.
var units = regexp.MustCompile(`^((Seconds|Microseconds|Milliseconds|Percent|None)|(Count|(Kilo|Mega|Giga|Tera)?(B|b)(ytes|its))(/Second)?)$`)

// TestMetricsLine checks a line against each MUST of the specification of the embedded
// metric format, for any measurement.
func TestMetricsLine(t *testing.T) {
	now := time.UnixMilli(1_559_748_430_481).Add(999 * time.Microsecond)
	for _, o := range []controlplane.OverAdmission{
		{},
		{Window: 7, Cells: 3, Buckets: 9, Max: 2.75, P99: 1e-9, Worst: "tenant:acme\n\x00\xff\"", Level: controlplane.LevelAlarm},
		{Cells: 100, Max: 1e21, P99: 1e21, Worst: strings.Repeat("x", 512)},
	} {
		line, err := metricsLine(o, now)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsAny(line, "\n\r") || len(line) > 1<<20 {
			t.Errorf("no line: %q", line)
		}
		checkDocument(t, line, now)
		var targets struct {
			OverAdmissionMax, OverAdmissionP99 float64
			Cells                              int
		}
		if err := json.Unmarshal(line, &targets); err != nil || targets.OverAdmissionMax != o.Max || targets.OverAdmissionP99 != o.P99 || targets.Cells != o.Cells {
			t.Errorf("%s says %+v of %+v: %v", line, targets, o, err)
		}
	}
}

// checkDocument checks the general rules of the specification.
func checkDocument(t *testing.T, line []byte, now time.Time) {
	t.Helper()
	var root map[string]json.RawMessage
	if err := json.Unmarshal(line, &root); err != nil { // nothing comes before or after it
		t.Fatalf("%s is no object: %v", line, err)
	}
	var d document
	strict := json.NewDecoder(bytes.NewReader([]byte(`{"_aws":` + string(root["_aws"]) + `}`)))
	strict.DisallowUnknownFields() // those objects have no additional members
	if err := strict.Decode(&d); err != nil || d.AWS == nil || d.AWS.Timestamp == nil || len(d.AWS.CloudWatchMetrics) == 0 {
		t.Fatalf("%s: %v", root["_aws"], err)
	}
	if *d.AWS.Timestamp != now.UnixMilli() {
		t.Errorf("at %d, want %d", *d.AWS.Timestamp, now.UnixMilli())
	}
	for _, directive := range d.AWS.CloudWatchMetrics {
		if directive.Namespace == nil || *directive.Namespace == "" || len(directive.Dimensions) == 0 || len(directive.Metrics) == 0 || len(directive.Metrics) > 100 {
			t.Errorf("directive %s", root["_aws"])
		}
		for _, target := range slices.Concat(directive.Dimensions...) {
			if value := ""; json.Unmarshal(root[target], &value) != nil || len(value) > 1024 {
				t.Errorf("the dimension %s is %s", target, root[target])
			}
		}
		for _, m := range directive.Metrics {
			if m.Name == nil {
				t.Fatalf("a metric without a name: %s", root["_aws"])
			}
			if value := 0.0; json.Unmarshal(root[*m.Name], &value) != nil {
				t.Errorf("the metric %s is %q", *m.Name, root[*m.Name])
			}
			if !units.MatchString(m.Unit) {
				t.Errorf("the metric %s has the unit %q", *m.Name, m.Unit)
			}
		}
	}
}
