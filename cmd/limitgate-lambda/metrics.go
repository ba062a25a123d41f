package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/limitgate/limitgate/controlplane"
)

// namespace is the CloudWatch namespace of the metrics.
const namespace = "Limitgate"

// metric is a metric as CloudWatch's embedded metric format declares it:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
type metric struct {
	Name string
	Unit string
}

// printMetrics prints the admissions of the cells as one line, from which CloudWatch
// makes metrics.
func printMetrics(o controlplane.OverAdmission) {
	line, err := metricsLine(o, time.Now())
	if err == nil {
		fmt.Fprintf(os.Stdout, "%s\n", line)
	}
}

// metricsLine returns the line that printMetrics prints.
func metricsLine(o controlplane.OverAdmission, now time.Time) ([]byte, error) {
	return json.Marshal(map[string]any{
		"_aws": map[string]any{
			"Timestamp": now.UnixMilli(),
			"CloudWatchMetrics": []any{map[string]any{
				"Namespace":  namespace,
				"Dimensions": [][]string{{}},
				"Metrics":    []metric{{"OverAdmissionMax", "None"}, {"OverAdmissionP99", "None"}, {"Cells", "Count"}},
			}},
		},
		"OverAdmissionMax": o.Max, "OverAdmissionP99": o.P99, "Cells": o.Cells, "Worst": o.Worst,
	})
}
