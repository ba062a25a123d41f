package capacity

import (
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Measured is the processor time of a master for calls, as limitgate doctor --measure writes it.
type Measured struct {
	Date  string `json:"date"`  // such as 2026-10-02
	Store string `json:"store"` // the server, its version and address
	// TLS is whether the connection was encrypted, and CallsPerScript the size of the batches.
	TLS            bool            `json:"tls"`
	CallsPerScript int             `json:"calls_per_script"`
	Points         []MeasuredPoint `json:"points"`
}

// MeasuredPoint is the processor time of a call with a number of buckets in one string.
type MeasuredPoint struct {
	Buckets int     `json:"buckets"`
	CPUus   float64 `json:"cpu_us"`
	Calls   int     `json:"calls"`
}

// Encode returns the content of the file.
func (m *Measured) Encode() ([]byte, error) {
	content, err := json.Marshal(m, jsontext.WithIndent("  "))
	if err != nil {
		return nil, fmt.Errorf("encode measurement: %w", err)
	}
	return append(content, '\n'), nil
}

// ParseMeasured parses the content of such a file.
func ParseMeasured(content []byte) (*Measured, error) {
	m := new(Measured)
	if err := decode(content, m, "want a file that limitgate doctor --measure FILE writes, see docs/capacity.md"); err != nil {
		return nil, fmt.Errorf("parse measurement: %w", err)
	}
	if _, err := time.Parse(time.DateOnly, m.Date); err != nil {
		return nil, fmt.Errorf("parse measurement: %.32q is not a date such as 2026-10-02", m.Date)
	}
	if len(m.Points) < 2 || m.Points[0].Buckets != 1 {
		return nil, fmt.Errorf("parse measurement: calls of one bucket and of more are needed")
	}
	for i, p := range m.Points {
		if i > 0 && p.Buckets <= m.Points[i-1].Buckets || p.CPUus <= 0 || p.CPUus > 1e6 {
			return nil, fmt.Errorf("parse measurement: point %d is out of order, or not from 0 to 1 s", i+1)
		}
	}
	return m, nil
}

// Apply makes the CPU per call the measured one.
func (m *Measured) Apply(in *Input) {
	first, last := m.Points[0], m.Points[len(m.Points)-1]
	note := fmt.Sprintf("%s, %s, %d calls in a script", m.Store, m.Date, m.CallsPerScript)
	further := max(0, (last.CPUus-first.CPUus)/float64(last.Buckets-first.Buckets))
	in.CallCPU = Number{round(first.CPUus), "us", OriginMeasured, note}
	in.FieldCPU = Number{round(further), "us", OriginMeasured, note}
	if m.TLS {
		in.StoreTLS = Number{1, "", OriginMeasured, "the measurement was by TLS"}
	}
}

// round rounds microseconds to nanoseconds.
func round(us float64) float64 { return math.Round(us*1000) / 1000 }
