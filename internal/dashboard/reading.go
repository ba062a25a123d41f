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
	Trial     TrialState
	Cell      CellState
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
	// Changes is how many changes of limits the history has recorded.
	Changes int64 `json:"changes"`
}

// TrialState describes the limits on trial. Counts are those of the last minute.
type TrialState struct {
	Version string    `json:"version"` // "" for none
	Share   string    `json:"share"`   // of the tenants
	Since   time.Time `json:"since"`
	// Requests counts the requests of these tenants that were compared, Denied those that the limits
	// on trial deny, and DeniedBefore those that the limits in use would deny.
	Requests     int64 `json:"requests"`
	Denied       int64 `json:"denied"`
	DeniedBefore int64 `json:"denied_before"`
	// Threshold is the share of the requests, 0 to 1, beyond that of the limits in use at which the
	// trial ends.
	Threshold float64 `json:"threshold"`
}

// CellState describes the cell of the proxy.
type CellState struct {
	Name   string  `json:"name"`   // "" outside cells
	Active int     `json:"active"` // cells
	Share  float64 `json:"share"`  // of each limit, 0 to 1
}

// StoreState describes the store and the proxies that share it.
type StoreState struct {
	Kind      string  `json:"kind"`      // memory, unreached, redis or cluster
	NoMaster  string  `json:"no_master"` // why no master of it is known, or ""
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
