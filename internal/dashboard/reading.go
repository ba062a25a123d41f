package dashboard

import (
	"time"

	"github.com/limitgate/limitgate/internal/denials"
	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/metrics"
)

// Reading is the state of the proxy at one time. Counts are those since its start.
type Reading struct {
	At        time.Time
	Totals    []metrics.Total
	Latencies *latency.Snapshot
	Top       limiter.Top
	Denials   []denials.Denial // the newest first
	Limits    LimitsState
	Store     StoreState
	// LeaseRefreshes counts how often the store granted units for a lease.
	LeaseRefreshes int64
}

// LimitsState describes the limits in use.
type LimitsState struct {
	Version string    `json:"version"`
	Source  string    `json:"source"`
	Since   time.Time `json:"since"`
	// Error is why newer limits are not in use, or "".
	Error string `json:"error"`
	// Trial describes the limits on trial, or "".
	Trial string `json:"trial"`
	// Cell is the name of this proxy's cell, or "", and Cells the number of active ones.
	Cell  string `json:"cell"`
	Cells int    `json:"cells"`
}

// StoreState describes the store and the proxies that share it.
type StoreState struct {
	Kind      string  `json:"kind"` // memory, redis or cluster
	Instances int     `json:"instances"`
	Shards    []Shard `json:"shards"`
}

// Shard describes one master of the store.
type Shard struct {
	Addr      string
	Breaker   string // closed, open or half_open
	Error     string // why the last call failed, or ""
	NextProbe time.Duration
	// Calls and Checks count the calls that it answered, and the checks in them.
	Calls, Checks, Errors, Queued int64
	RoundTrip                     *latency.Snapshot
}
