// Package emftest reads lines in CloudWatch's embedded metric format for tests, and checks each rule of
// the format's specification.
package emftest

import (
	"bytes"
	_ "embed" // the schema
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// maxBytes bounds an event of CloudWatch Logs.
const maxBytes = 1 << 20

//go:embed testdata/schema.json
var schemaText []byte

// rules returns the schema of the format.
var rules = sync.OnceValue(func() *schema {
	s := new(schema)
	if err := json.Unmarshal(schemaText, s, json.RejectUnknownMembers(true)); err != nil {
		panic(err)
	}
	s.compile()
	return s
})

// Line is a line with one set of dimensions.
type Line struct {
	Namespace  string
	Time       time.Time
	Dimensions map[string]string
	Metrics    map[string][]float64
	Units      map[string]string // of Metrics
	Resolution map[string]int    // of Metrics, 60 unless the line has another one
	Properties map[string]any    // members that are neither metrics nor dimensions
}

// directive is what the schema has checked.
type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []struct {
		Name, Unit        string
		StorageResolution int
	}
}

// Check returns a line, with its newline, as CloudWatch reads it. The error names the rule that the
// line breaks.
func Check(text []byte) (l Line, err error) {
	line, ended := bytes.CutSuffix(text, []byte{'\n'})
	if !ended || bytes.ContainsAny(line, "\r\n") || len(text) > maxBytes {
		return l, fmt.Errorf("not one line of at most %d bytes", maxBytes)
	}
	var members map[string]any
	if err := json.Unmarshal(line, &members); err != nil { // also of two members of one name
		return l, err
	}
	if err := rules().check("line", members); err != nil {
		return l, err
	}
	var metadata struct {
		AWS struct {
			Timestamp         int64
			CloudWatchMetrics []directive
		} `json:"_aws"`
	}
	if err := json.Unmarshal(line, &metadata); err != nil {
		return l, err
	}
	delete(members, "_aws")
	if len(metadata.AWS.CloudWatchMetrics) != 1 || len(metadata.AWS.CloudWatchMetrics[0].Dimensions) != 1 {
		return l, errors.New("several directives or sets of dimensions, which Line has no room for")
	}
	l.Time = time.UnixMilli(metadata.AWS.Timestamp).UTC()
	return l, l.read(&metadata.AWS.CloudWatchMetrics[0], members)
}

// read reads the targets of a directive, and takes them out of members.
func (l *Line) read(d *directive, members map[string]any) error {
	l.Namespace, l.Dimensions, l.Metrics = d.Namespace, map[string]string{}, map[string][]float64{}
	l.Units, l.Resolution, l.Properties = map[string]string{}, map[string]int{}, members
	for _, name := range d.Dimensions[0] {
		value, ok := members[name].(string)
		if !ok || value == "" || utf8.RuneCountInString(value) > 1024 {
			return fmt.Errorf("the dimension %s is %v", name, members[name])
		}
		l.Dimensions[name] = value
		delete(members, name)
	}
	for _, m := range d.Metrics {
		values, ok := members[m.Name].([]any)
		if !ok {
			values = []any{members[m.Name]}
		}
		if len(values) == 0 || len(values) > 100 {
			return fmt.Errorf("the metric %s has %d values", m.Name, len(values))
		}
		for _, value := range values {
			number, ok := value.(float64)
			if !ok {
				return fmt.Errorf("the metric %s is %v", m.Name, members[m.Name])
			}
			l.Metrics[m.Name] = append(l.Metrics[m.Name], number)
		}
		l.Units[m.Name], l.Resolution[m.Name] = m.Unit, m.StorageResolution
		if m.StorageResolution == 0 {
			l.Resolution[m.Name] = 60
		}
		delete(members, m.Name)
	}
	return nil
}

// CheckAll checks and returns all lines of a text.
func CheckAll(tb testing.TB, text string) (all []Line) {
	tb.Helper()
	for line := range strings.SplitAfterSeq(text, "\n") {
		if line == "" {
			break
		}
		l, err := Check([]byte(line))
		if err != nil {
			tb.Fatalf("%.2000s: %v", line, err)
		}
		all = append(all, l)
	}
	return all
}

// Sum returns the sum of a metric over lines with a limit, or those of the process if it is empty.
func Sum(lines []Line, limit, metric string) (sum float64) {
	for _, l := range lines {
		if l.Dimensions["Limit"] != limit {
			continue
		}
		for _, v := range l.Metrics[metric] {
			sum += v
		}
	}
	return sum
}
