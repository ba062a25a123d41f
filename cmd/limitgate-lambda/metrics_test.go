package main

import (
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/internal/emf/emftest"
)

// TestMetricsLine checks that CloudWatch reads the metrics of any measurement.
func TestMetricsLine(t *testing.T) {
	now := time.UnixMilli(1_559_748_430_481).Add(999 * time.Microsecond)
	for _, o := range []controlplane.OverAdmission{
		{},
		{Window: 7, Cells: 3, Buckets: 9, Max: 2.75, P99: 1e-9, Worst: "tenant:acme\n\x00\xff\"", Level: controlplane.LevelAlarm},
		{Cells: 100, Max: 1e21, P99: 1e21, Worst: strings.Repeat("x", 512)},
	} {
		line := metricsLine(o, now)
		got, err := emftest.Check(line.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		worst, _ := got.Properties["Worst"].(string)
		if got.Time.UnixMilli() != now.UnixMilli() || len(got.Dimensions) > 0 || worst != strings.ToValidUTF8(o.Worst, "\ufffd") {
			t.Errorf("%+v of %+v", got, o)
		}
		for name, want := range map[string]float64{"OverAdmissionMax": o.Max, "OverAdmissionP99": o.P99, "Cells": float64(o.Cells)} {
			if values := got.Metrics[name]; len(values) != 1 || values[0] != want || got.Resolution[name] != 60 {
				t.Errorf("%s is %v of %+v", name, values, o)
			}
		}
	}
}
