package emf

import "time"

// Snapshot is the state of a proxy at one time. Its counts are totals since the start of the process,
// which never fall.
type Snapshot struct {
	// Limits are all limits that ever decided, each once.
	Limits []Limit
	// Totals are those of the process.
	Totals Totals

	// DecisionP99 is the time in which 99 % of the decisions since the snapshot before were made, in
	// milliseconds; 0 if there were none.
	DecisionP99  float64
	OpenBreakers int  // masters of the store that get no calls, or only probes
	ConfigStale  bool // newer limits could not be loaded
	ActiveCells  int  // cells that share the limits; 0 outside cells
}

// Limit is a limit, or several of one id, with its counts.
type Limit struct {
	ID string
	// Plan and Op are the names of its plans and its conditions on op. Each may be empty.
	Plan, Op string
	// PerCell are the different values that this cell enforces of it; none outside cells.
	PerCell []float64
	Counts  Counts
}

// Counts count the decisions of a limit.
type Counts struct {
	// Allowed counts what a shadow limit would have allowed too.
	Allowed, Denied, WouldDeny int64
	// Sources counts all of them by the part that decided.
	Sources map[string]int64
}

// Totals count for the whole process. Decisions counts each request once, under the limit that bound
// it or none; Denied, Backstop and Lease are some of these.
type Totals struct {
	Decisions, Denied, Backstop, Lease int64

	LeaseRefreshes, StoreErrors int64
}

// since returns the counts that are new after before.
func (c Counts) since(before Counts) Counts {
	d := Counts{Allowed: c.Allowed - before.Allowed, Denied: c.Denied - before.Denied, WouldDeny: c.WouldDeny - before.WouldDeny, Sources: map[string]int64{}}
	for source, n := range c.Sources {
		if n > before.Sources[source] {
			d.Sources[source] = n - before.Sources[source]
		}
	}
	return d
}

// since returns the totals that are new after before.
func (t Totals) since(before Totals) Totals {
	return Totals{
		Decisions: t.Decisions - before.Decisions, Denied: t.Denied - before.Denied, Backstop: t.Backstop - before.Backstop, Lease: t.Lease - before.Lease,
		LeaseRefreshes: t.LeaseRefreshes - before.LeaseRefreshes, StoreErrors: t.StoreErrors - before.StoreErrors,
	}
}

// limitLine returns the line of a limit with the counts of one second.
func limitLine(service string, second time.Time, l *Limit, c Counts) Line {
	line := Line{
		Time: second, EachSecond: true,
		Dimensions: []Dimension{{"Service", service}, {"Limit", l.ID}},
		Metrics: []Metric{
			One("Allowed", UnitCount, float64(c.Allowed)),
			One("Denied", UnitCount, float64(c.Denied)),
			One("WouldDeny", UnitCount, float64(c.WouldDeny)),
			{"PerCellLimit", UnitCount, l.PerCell},
		},
	}
	if l.Plan != "" {
		line.Properties = append(line.Properties, Property{"plan", l.Plan})
	}
	if l.Op != "" {
		line.Properties = append(line.Properties, Property{"op", l.Op})
	}
	line.Properties = append(line.Properties, Property{"sources", c.Sources})
	return line
}

// processLine returns the line of the process with the totals of one second.
func processLine(service string, second time.Time, s *Snapshot, t Totals) Line {
	stale := 0.0
	if s.ConfigStale {
		stale = 1
	}
	line := Line{
		Time: second, EachSecond: true,
		Dimensions: []Dimension{{"Service", service}},
		Metrics: []Metric{
			One("Decisions", UnitCount, float64(t.Decisions)),
			One("Denied", UnitCount, float64(t.Denied)),
			One("Backstop", UnitCount, float64(t.Backstop)),
			One("StoreErrors", UnitCount, float64(t.StoreErrors)),
			One("OpenBreakers", UnitCount, float64(s.OpenBreakers)),
			One("ConfigStale", UnitNone, stale),
			One("LeaseRefreshes", UnitCount, float64(t.LeaseRefreshes)),
			One("LeaseDecisions", UnitCount, float64(t.Lease)),
		},
	}
	if s.DecisionP99 > 0 {
		line.Metrics = append(line.Metrics, One("DecisionP99", UnitMilliseconds, s.DecisionP99))
	}
	if s.ActiveCells > 0 {
		line.Metrics = append(line.Metrics, One("ActiveCells", UnitCount, float64(s.ActiveCells)))
	}
	return line
}
