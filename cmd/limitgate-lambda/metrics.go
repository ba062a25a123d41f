package main

import (
	"os"
	"time"

	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/internal/emf"
)

// printMetrics prints the admissions of the cells as one line, from which CloudWatch
// makes metrics.
func printMetrics(o controlplane.OverAdmission) {
	line := metricsLine(o, time.Now())
	_, _ = os.Stdout.Write(line.Append(nil))
}

// metricsLine returns the line that printMetrics prints.
func metricsLine(o controlplane.OverAdmission, now time.Time) emf.Line {
	return emf.Line{
		Time: now,
		Metrics: []emf.Metric{
			emf.One("OverAdmissionMax", emf.UnitNone, o.Max),
			emf.One("OverAdmissionP99", emf.UnitNone, o.P99),
			emf.One("Cells", emf.UnitCount, float64(o.Cells)),
		},
		Properties: []emf.Property{{Name: "Worst", Value: o.Worst}},
	}
}
