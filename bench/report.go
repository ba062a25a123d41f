package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// reportFormat is the version of the JSON below.
const reportFormat = 1

// Report is the outcome of the benchmark.
type Report struct {
	Format   int       `json:"format"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`
	Machine  Machine   `json:"machine"`
	Settings Settings  `json:"settings"`
	Cases    []Result  `json:"cases"`
}

// Settings are the durations and counts of the measurement.
type Settings struct {
	Quick        bool    `json:"quick"`
	Rounds       int     `json:"rounds"`
	RoundSeconds float64 `json:"round_seconds"`
}

// Result is the outcome of a case.
type Result struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	About string `json:"about"`
	// Sides are the sides compared: Limitgate and then its yardstick.
	Sides   []SideResult `json:"sides,omitempty"`
	Figures []Figure     `json:"figures,omitempty"`
	// Profile is the profile of the proxy, in a case that missed a goal.
	Profile *Profile `json:"profile,omitempty"`
	// Error is the reason why there are no figures.
	Error string `json:"error,omitempty"`
	// Others is the share of the machine in percent that processes outside of the case
	// used.
	Others float64 `json:"others_percent"`
}

// SideResult is the result of the rounds of one side. CPU is in microseconds for each
// decision, latency in milliseconds.
type SideResult struct {
	Name      string  `json:"name"`
	PerSecond Spread  `json:"per_second"`
	Client    Spread  `json:"client_cpu_us"`
	Proxy     *Spread `json:"proxy_cpu_us,omitempty"`
	Store     *Spread `json:"store_cpu_us,omitempty"`
	// Script is the time that the store's scripts ran for each decision, by its own
	// account; Batch is the mean number of decisions per script call.
	Script    *Spread          `json:"script_us,omitempty"`
	Batch     *Spread          `json:"decisions_per_script,omitempty"`
	P50       Spread           `json:"p50_ms"`
	P99       Spread           `json:"p99_ms"`
	P999      *Spread          `json:"p99_9_ms,omitempty"`
	Decisions int64            `json:"decisions"`
	Sources   map[string]int64 `json:"sources,omitempty"`
}

// missed returns how many goals there are, and how many were missed; a case without
// figures misses all of its goals, which counts as one.
func (r *Report) missed() (n, goals int) {
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Error != "" {
			n, goals = n+1, goals+1
		}
		for j := range c.Figures {
			f := &c.Figures[j]
			if f.Goal == nil {
				continue
			}
			goals++
			if f.Verdict == missed {
				n++
			}
		}
	}
	return n, goals
}

// Failed returns how many cases failed.
func (r *Report) Failed() int {
	n := 0
	for i := range r.Cases {
		if r.Cases[i].Error != "" {
			n++
		}
	}
	return n
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// ReadReport reads the output of WriteJSON.
func ReadReport(from io.Reader) (*Report, error) {
	r := new(Report)
	if err := json.NewDecoder(from).Decode(r); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if r.Format != reportFormat {
		return nil, fmt.Errorf("read report: its format is %d, not %d", r.Format, reportFormat)
	}
	return r, nil
}
