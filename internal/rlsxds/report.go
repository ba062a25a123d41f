package rlsxds

import (
	"log/slog"
	"time"

	"github.com/limitgate/limitgate/internal/logthrottle"
)

const (
	// maxLines bounds the lines of one kind in a period of linePeriod, whatever the server does. A server
	// that restarts makes two or three.
	maxLines   = 10
	linePeriod = time.Minute
)

// lines logs the changes of the state.
type lines struct {
	log                           *slog.Logger
	connected, lost, applied, bad logthrottle.Throttle
	lastLoss, lastRejection       string // the reason that was logged last; empty if the state changed since
}

// newLines returns lines to a log.
func newLines(log *slog.Logger) *lines {
	l := &lines{log: log}
	for _, t := range []*logthrottle.Throttle{&l.connected, &l.lost, &l.applied, &l.bad} {
		t.Period, t.Lines = linePeriod, maxLines
	}
	return l
}

// connected reports an open stream.
func (c *Client) connected() {
	c.update(func(s *Status) { s.Connected, s.Err = true, nil })
	c.lines.lastLoss = ""
	if c.lines.connected.Allow() {
		c.lines.log.Info("connected to the xDS server", "version", c.Status().Version)
	}
}

// lost reports that there is no stream. Attempts that fail for the same reason as the one before are not
// logged.
func (c *Client) lost(err error) {
	err = shorten(err)
	c.update(func(s *Status) { s.Connected, s.Err = false, err })
	if err.Error() == c.lines.lastLoss {
		return
	}
	c.lines.lastLoss = err.Error()
	if c.lines.lost.Allow() {
		s := c.Status()
		c.lines.log.Warn("no connection to the xDS server, keeping the limits in use", "loaded", s.Loaded, "version", s.Version, "error", err)
	}
}

// accepted reports a response whose resources are in force. Only those that were not in force before are
// logged.
func (c *Client) accepted(r *response, changed bool) {
	c.version = r.version
	c.update(func(s *Status) {
		s.Loaded, s.Version, s.Err = true, r.version, nil
		s.Accepted++
	})
	c.lines.lastRejection = ""
	if changed && c.lines.applied.Allow() {
		c.lines.log.Info("limits of the xDS server applied", "version", r.version, "domains", len(r.resources), "accepted", c.Status().Accepted)
	}
}

// rejected reports a response that is refused. The same reason is logged once.
func (c *Client) rejected(r *response, err error) {
	c.update(func(s *Status) {
		s.Err = err
		s.Rejected++
	})
	if err.Error() == c.lines.lastRejection {
		return
	}
	c.lines.lastRejection = err.Error()
	if c.lines.bad.Allow() {
		s := c.Status()
		c.lines.log.Warn("rejected limits of the xDS server, keeping the limits in use", "version", s.Version, "rejected", r.version, "error", err)
	}
}
