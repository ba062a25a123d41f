package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

const (
	// maxSimulated bounds the requests of a simulation, and so its reply.
	maxSimulated = 5000
	// simulationWait is how long a form waits for another one's simulation, which takes some
	// milliseconds. One simulation runs at a time, so that forms leave the processors to decisions.
	simulationWait = time.Second
)

// Simulation is the result of requests to one bucket, decided by the limiter of this program with
// a clock of its own.
type Simulation struct {
	Algorithm string             `json:"algorithm"`
	Capacity  int64              `json:"capacity"`
	Rate      int64              `json:"rate"`
	Allowed   int                `json:"allowed"`
	Denied    int                `json:"denied"`
	Requests  []SimulatedRequest `json:"requests"`
}

// SimulatedRequest is one request and its decision.
type SimulatedRequest struct {
	At         float64 `json:"at_ms"`
	Allowed    bool    `json:"allowed"`
	Remaining  int64   `json:"remaining"`
	RetryAfter int64   `json:"retry_after_ms"`
}

// simulation are the parameters: a bucket of some capacity that gets rate units a second, and
// arrivals requests a second.
type simulation struct {
	algorithm, pattern string
	capacity, rate     int64
	arrivals           float64
	seconds            int64
	seed               uint64
}

// patterns return the times at which requests arrive, in seconds.
var patterns = map[string]func(s *simulation) []float64{
	"steady": func(s *simulation) (at []float64) {
		for t := 0.0; t < float64(s.seconds); t = float64(len(at)) / s.arrivals {
			at = append(at, t)
		}
		return at
	},
	"poisson": func(s *simulation) (at []float64) {
		random := rand.New(rand.NewPCG(s.seed, 1))
		for t := random.ExpFloat64() / s.arrivals; t < float64(s.seconds); t += random.ExpFloat64() / s.arrivals {
			at = append(at, t)
		}
		return at
	},
	"bursts": func(s *simulation) (at []float64) { // of four seconds' requests, all at once
		n := int(math.Round(4 * s.arrivals))
		for t := 0.0; t < float64(s.seconds); t += 4 {
			at = append(at, slices.Repeat([]float64{t}, n)...)
		}
		return at
	},
}

// simulate answers the form of the simulator.
func (d *Dashboard) simulate(w http.ResponseWriter, r *http.Request, _ *users.User) {
	s, err := parseSimulation(r.URL.Query())
	if err != nil {
		sendJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	result, err := d.runAlone(r.Context(), &s)
	if errors.Is(err, errSimulating) {
		w.Header().Set("Retry-After", "1")
		sendJSON(w, http.StatusServiceUnavailable, map[string]string{"error": err.Error()})
		return
	}
	if err != nil {
		sendJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	sendJSON(w, http.StatusOK, result)
}

// errSimulating is returned when other simulations run for too long.
var errSimulating = errors.New("other simulations are running: try again")

// runAlone runs a simulation when no other one runs.
func (d *Dashboard) runAlone(ctx context.Context, s *simulation) (*Simulation, error) {
	ctx, cancel := context.WithTimeout(ctx, simulationWait)
	defer cancel()
	select {
	case d.simulating <- struct{}{}:
	case <-ctx.Done():
		return nil, errSimulating
	}
	defer func() { <-d.simulating }()
	return s.run()
}

// parseSimulation reads the parameters of a form. One that is missing has the value with which the
// form begins.
func parseSimulation(q url.Values) (s simulation, err error) {
	s.algorithm, s.pattern = cmp.Or(q.Get("algorithm"), "token_bucket"), cmp.Or(q.Get("pattern"), "steady")
	if patterns[s.pattern] == nil {
		return s, fmt.Errorf("%.32q is no pattern: steady, poisson and bursts are", s.pattern)
	}
	whole := func(name, initial string, least, most int64) (n int64) {
		n, parseErr := strconv.ParseInt(cmp.Or(q.Get(name), initial), 10, 64)
		if err == nil && (parseErr != nil || n < least || n > most) {
			err = fmt.Errorf("%s is a whole number from %d to %d", name, least, most)
		}
		return n
	}
	s.capacity = whole("capacity", "10", 1, 1_000_000)
	s.rate = whole("rate", "5", 1, 1_000_000)
	s.seconds = whole("seconds", "20", 1, 600)
	s.seed = uint64(whole("seed", "1", 0, math.MaxInt64))
	var parseErr error
	s.arrivals, parseErr = strconv.ParseFloat(cmp.Or(q.Get("arrivals"), "8"), 64)
	switch {
	case err != nil:
	case parseErr != nil || !(s.arrivals >= 0.1 && s.arrivals <= maxSimulated):
		err = fmt.Errorf("arrivals is a number from 0.1 to %d", maxSimulated)
	case s.arrivals*float64(s.seconds) > maxSimulated:
		err = fmt.Errorf("%g arrivals a second for %d seconds are more than %d requests", s.arrivals, s.seconds, maxSimulated)
	}
	return s, err
}

// limits returns limits with the one limit of the simulation: a token bucket gets rate units a
// second, and any other algorithm admits capacity units in the time in which it would get as many,
// in whole seconds.
func (s *simulation) limits() (*limit.Set, error) {
	text := func(value string) limit.Text {
		if value == "" {
			return limit.Text{}
		}
		return limit.Text{Value: value, Line: 1}
	}
	rate, burst := fmt.Sprintf("%d/s", s.rate), strconv.FormatInt(s.capacity, 10)
	if s.algorithm != "token_bucket" {
		rate, burst = fmt.Sprintf("%d/%ds", s.capacity, (s.capacity+s.rate-1)/s.rate), ""
	}
	rule := limit.RuleSpec{Line: 1, ID: text("simulated"), BySet: true, By: []limit.Text{text("tenant")}, Rate: text(rate), Burst: text(burst), Algorithm: text(s.algorithm)}
	set, _, err := limit.Compile(&limit.Document{
		File: "simulation", Version: text("1"), DefaultPlan: text("p"), Plans: []limit.PlanSpec{{Name: text("p"), Limits: []limit.RuleSpec{rule}}},
	}, limit.CompileOptions{})
	var problems *limit.Problems
	if errors.As(err, &problems) {
		return nil, errors.New(problems.List[0].Text)
	}
	return set, err
}

// run decides the requests.
func (s *simulation) run() (*Simulation, error) {
	set, err := s.limits()
	if err != nil {
		return nil, err
	}
	begin := time.Unix(1_800_000_000, 0) // on which windows of a second to a day begin
	now := begin
	l := limiter.New(limiter.Options{Store: memory.New(memory.Options{Buckets: 64}), Timeout: time.Second, Now: func() time.Time { return now }}, set)
	result := &Simulation{Algorithm: s.algorithm, Capacity: s.capacity, Rate: s.rate, Requests: []SimulatedRequest{}}
	var b limiter.Batch
	for _, at := range patterns[s.pattern](s) {
		if len(result.Requests) == maxSimulated {
			break
		}
		now = begin.Add(time.Duration(at * float64(time.Second)))
		b.Reset()
		b.Requests = append(b.Requests, limit.Request{Tenant: "simulated", Cost: 1})
		l.Decide(&b)
		d := &b.Decisions[0]
		result.Requests = append(result.Requests, SimulatedRequest{at * 1000, d.Allowed, d.Remaining, d.RetryAfter})
		if d.Allowed {
			result.Allowed++
		} else {
			result.Denied++
		}
	}
	return result, nil
}
