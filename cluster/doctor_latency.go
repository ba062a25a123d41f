package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
)

// The number of commands for measuring a master: they take well below a tenth of a second
// of its time.
const (
	clockReadings = 5
	pings         = 100
	rounds        = 20
	aloneCalls    = 16 // per round, one after the other
	batchSize     = 64
)

// measure measures the speed of the master, and stops if the connection is lost. After
// until it makes do with the readings that it has.
func (s *nodeInspection) measure(ctx context.Context, until time.Time) {
	half := time.Now().Add(time.Until(until) / 2)
	steps := []func() error{
		func() error { return s.readClock(ctx) },
		func() error { return s.ping(ctx, half) },
	}
	if s.report.Probes.Write == Done {
		steps = append(steps, func() error { return s.decide(ctx, until) })
	}
	for _, step := range steps {
		err := step()
		if _, refused := resp.AsError(err); err != nil && !refused {
			s.disconnect(err)
			return
		}
	}
}

// exchange sends commands and reads n replies. It returns the first error of each, or the
// first error reply, after all replies are read.
func (s *nodeInspection) exchange(out []byte, n int, each func(i int, words []string) error) error {
	if _, err := s.conn.Write(out); err != nil {
		return err
	}
	var first error
	for i := range n {
		words, err := s.conn.in.Strings()
		if _, refused := resp.AsError(err); err != nil && !refused {
			return err
		}
		if err == nil {
			err = each(i, words)
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// readClock compares the clocks, using the reading with the shortest round trip.
func (s *nodeInspection) readClock(ctx context.Context) error {
	c := &s.report.Clock
	for i := range clockReadings {
		if !s.ready(ctx) {
			return nil
		}
		sent := time.Now()
		err := s.exchange(resp.AppendCommand(nil, "TIME"), 1, func(_ int, words []string) error {
			now, err := parseTime(words)
			if within := time.Since(sent) / 2; err == nil && (i == 0 || within < c.Within) {
				c.Offset, c.Within = now.Sub(sent.Add(within)), within
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// parseTime parses a reply to TIME.
func parseTime(words []string) (time.Time, error) {
	if len(words) != 2 {
		return time.Time{}, resp.ErrReply
	}
	s, ok := resp.ParseNumber([]byte(words[0]))
	us, ok2 := resp.ParseNumber([]byte(words[1]))
	if !ok || !ok2 {
		return time.Time{}, resp.ErrReply
	}
	return time.Unix(s, us*1000), nil
}

// ping measures the round trip.
func (s *nodeInspection) ping(ctx context.Context, until time.Time) error {
	var times []time.Duration
	for len(times) < pings && (len(times) == 0 || time.Now().Before(until)) && s.ready(ctx) {
		sent := time.Now()
		err := s.exchange(resp.AppendCommand(nil, "PING"), 1, func(int, []string) error {
			times = append(times, time.Since(sent))
			return nil
		})
		if err != nil {
			return err
		}
	}
	s.report.RoundTrip = summarize(times)
	return nil
}

// decide measures decisions, one in a call and batchSize in a batch, on buckets that it
// writes like a real take.
func (s *nodeInspection) decide(ctx context.Context, until time.Time) error {
	if !s.ready(ctx) {
		return nil
	}
	var calls [][]limit.Item
	for i := range batchSize {
		key := s.tags[i%len(s.tags)] + ":" + strconv.Itoa(i)
		s.keys = append(s.keys, key)
		calls = append(calls, []limit.Item{probeItem(key, "")})
	}
	alone := s.dialer.probeBatch(opTake, s.conn.opts, calls[0])
	batch := s.dialer.probeBatch(opTake, s.conn.opts, calls...)
	var single, shared []time.Duration
	for len(single) < rounds && (len(single) == 0 || time.Now().Before(until)) && s.ready(ctx) {
		one, err := s.clockFlight(alone, aloneCalls)
		many := time.Duration(0)
		if err == nil {
			many, err = s.clockFlight(batch, 1)
		}
		if refused, ok := resp.AsError(err); ok {
			s.report.Probes.Batch = Outcome(refused)
		}
		if err != nil {
			return err
		}
		single, shared = append(single, one/aloneCalls), append(shared, many/batchSize)
	}
	if len(single) == 0 {
		return nil
	}
	slices.Sort(single)
	slices.Sort(shared)
	s.report.Probes.Batch = Done
	s.report.Decision = Decision{
		Calls: len(single) * (aloneCalls + batchSize), BatchSize: batchSize,
		Alone: single[len(single)/2], Batched: shared[len(shared)/2],
	}
	return nil
}

// clockFlight sends a batch a number of times. It returns how long the master was busy with
// it, by the master's clock: commands of other connections rarely run between commands of
// one connection that arrive together.
func (s *nodeInspection) clockFlight(b *batch, times int) (time.Duration, error) {
	out := resp.AppendCommand(nil, "TIME")
	for range times {
		out = append(out, b.out...)
	}
	out = resp.AppendCommand(out, "TIME")
	n := len(b.commands)*times + 2
	var begin, end time.Time
	err := s.exchange(out, n, func(i int, words []string) (err error) {
		switch i {
		case 0:
			begin, err = parseTime(words)
		case n - 1:
			end, err = parseTime(words)
		default:
			for _, word := range words {
				if _, ok := resp.ParseNumber([]byte(word)); !ok {
					return fmt.Errorf("decide probe: %w", resp.Error(word))
				}
			}
		}
		return err
	})
	return end.Sub(begin), err
}
