package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/limitgate/limitgate/cluster/doctor"
	"github.com/limitgate/limitgate/internal/capacity"
)

// writeMeasured writes the processor time that a report has into the file at path, for limitgate
// plan, unless path is empty.
func writeMeasured(r *doctor.Report, path string, tls bool, now time.Time) error {
	if path == "" {
		return nil
	}
	if len(r.Masters) == 0 {
		return errors.New("measure: no master was found; limitgate doctor without --measure says why")
	}
	m := &r.Masters[0]
	if len(m.CPU) == 0 {
		return fmt.Errorf("measure %s: %s", m.Addr, m.CPUError)
	}
	out := capacity.Measured{
		Date:  now.UTC().Format(time.DateOnly),
		Store: fmt.Sprintf("%s %s at %s", m.Server, m.Version, m.Addr),
		TLS:   tls, CallsPerScript: m.CPU[0].PerScript,
	}
	for _, c := range m.CPU {
		us := float64(c.CPU) / float64(time.Microsecond)
		out.Points = append(out.Points, capacity.MeasuredPoint{Buckets: c.Buckets, CPUus: us, Calls: c.Calls})
	}
	content, err := out.Encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write measurement: %w", err)
	}
	return nil
}
