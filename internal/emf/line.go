package emf

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Namespace is the CloudWatch namespace of all metrics.
const Namespace = "Limitgate"

// The units of metrics.
const (
	UnitCount        = "Count"
	UnitMilliseconds = "Milliseconds"
	UnitNone         = "None"
)

// Bounds of the format. Those of dimensions, 30, and of metrics, 100, are far away.
const (
	maxValues    = 100 // of one metric
	maxLineBytes = 1 << 20
)

// Line is one document of the embedded metric format:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
type Line struct {
	Time time.Time
	// Dimensions are the one set of dimensions of all metrics. It may be empty.
	Dimensions []Dimension
	Metrics    []Metric
	// Properties are members that are neither metrics nor dimensions. A line that would be too long
	// has none.
	Properties []Property
	// EachSecond makes CloudWatch store the metrics for each second, not for each minute.
	EachSecond bool
}

// Dimension is a dimension with its value, of 1 to 1024 characters.
type Dimension struct{ Name, Value string }

// Metric is a metric with its values: one number, or several that CloudWatch adds to its statistics.
// Values that are not finite, and those beyond the hundredth, are left out. A metric without values
// is left out.
type Metric struct {
	Name, Unit string
	Values     []float64
}

// Property is a member of a document with any value that has a form in JSON.
type Property struct {
	Name  string
	Value any
}

// One returns a metric of one value.
func One(name, unit string, value float64) Metric { return Metric{name, unit, []float64{value}} }

// Append appends the line with its newline.
func (l *Line) Append(dst []byte) []byte {
	begin := len(dst)
	dst = l.appendMetadata(append(dst, '{'))
	for _, d := range l.Dimensions {
		dst = appendJSON(append(dst, ','), d.Name)
		dst = appendJSON(append(dst, ':'), d.Value)
	}
	for i := range l.Metrics {
		dst = l.Metrics[i].appendMember(dst)
	}
	end := len(dst)
	for _, p := range l.Properties {
		value, err := json.Marshal(p.Value)
		if err != nil {
			continue
		}
		dst = appendJSON(append(dst, ','), p.Name)
		dst = append(append(dst, ':'), value...)
	}
	if len(dst)+len("}\n")-begin > maxLineBytes {
		dst = dst[:end]
	}
	return append(dst, '}', '\n')
}

// appendMetadata appends the member that declares metrics and dimensions.
func (l *Line) appendMetadata(dst []byte) []byte {
	dst = append(dst, `"_aws":{"Timestamp":`...)
	dst = strconv.AppendInt(dst, l.Time.UnixMilli(), 10)
	dst = append(dst, `,"CloudWatchMetrics":[{"Namespace":"`+Namespace+`","Dimensions":[[`...)
	for i, d := range l.Dimensions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSON(dst, d.Name)
	}
	dst = append(dst, `]],"Metrics":[`...)
	first := true
	for i := range l.Metrics {
		m := &l.Metrics[i]
		if len(m.finite()) == 0 {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendJSON(append(dst, `{"Name":`...), m.Name)
		dst = appendJSON(append(dst, `,"Unit":`...), m.Unit)
		if l.EachSecond {
			dst = append(dst, `,"StorageResolution":1`...)
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}]}"...)
}

// finite returns the values that the format allows.
func (m *Metric) finite() []float64 {
	var all []float64
	for _, v := range m.Values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) && len(all) < maxValues {
			all = append(all, v)
		}
	}
	return all
}

// appendMember appends the member with the values, if there are any.
func (m *Metric) appendMember(dst []byte) []byte {
	values := m.finite()
	if len(values) == 0 {
		return dst
	}
	dst = append(appendJSON(append(dst, ','), m.Name), ':')
	if len(values) == 1 {
		return strconv.AppendFloat(dst, values[0], 'f', -1, 64)
	}
	dst = append(dst, '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
	}
	return append(dst, ']')
}

// appendJSON appends a string of JSON.
func appendJSON(dst []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // a string has a form in JSON
	return append(dst, quoted...)
}
