package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/limitgate/limitgate/cluster"
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
func (m *masterInspection) measure(ctx context.Context, until time.Time) {
	half := time.Now().Add(time.Until(until) / 2)
	steps := []func() error{
		func() error { return m.readClock(ctx) },
		func() error { return m.ping(ctx, half) },
	}
	if m.report.Probes.Write == Done {
		steps = append(steps, func() error { return m.decide(ctx, until) })
	}
	for _, step := range steps {
		err := step()
		if _, refused := resp.AsError(err); err != nil && !refused {
			m.disconnect(err)
			return
		}
	}
}

// readClock compares the clocks, using the reading with the shortest round trip.
func (m *masterInspection) readClock(ctx context.Context) error {
	c := &m.report.Clock
	for i := range clockReadings {
		if !m.ready(ctx) {
			return nil
		}
		sent := time.Now()
		err := m.conn.Exchange(resp.AppendCommand(nil, "TIME"), 1, func(_ int, words []string) error {
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
func (m *masterInspection) ping(ctx context.Context, until time.Time) error {
	var times []time.Duration
	for len(times) < pings && (len(times) == 0 || time.Now().Before(until)) && m.ready(ctx) {
		sent := time.Now()
		err := m.conn.Exchange(resp.AppendCommand(nil, "PING"), 1, func(int, []string) error {
			times = append(times, time.Since(sent))
			return nil
		})
		if err != nil {
			return err
		}
	}
	m.report.RoundTrip = summarize(times)
	return nil
}

// decide measures decisions, one in a call and batchSize in a batch, on buckets that it
// writes like a real take.
func (m *masterInspection) decide(ctx context.Context, until time.Time) error {
	if !m.ready(ctx) {
		return nil
	}
	var calls [][]limit.Item
	for i := range batchSize {
		key := m.tags[i%len(m.tags)] + ":" + strconv.Itoa(i)
		m.keys = append(m.keys, key)
		calls = append(calls, []limit.Item{cluster.ProbeItem(key, "")})
	}
	alone, batch := m.conn.Encode(calls[0]), m.conn.Encode(calls...)
	var single, shared []time.Duration
	for len(single) < rounds && (len(single) == 0 || time.Now().Before(until)) && m.ready(ctx) {
		one, err := m.timeBatch(alone, aloneCalls)
		many := time.Duration(0)
		if err == nil {
			many, err = m.timeBatch(batch, 1)
		}
		if refused, ok := resp.AsError(err); ok {
			m.report.Probes.Batch = Outcome(refused)
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
	m.report.Probes.Batch = Done
	m.report.Decision = Decision{
		Calls: len(single) * (aloneCalls + batchSize), BatchSize: batchSize,
		Alone: single[len(single)/2], Batched: shared[len(shared)/2],
	}
	return nil
}

// timeBatch sends a batch a number of times. It returns how long the master was busy with
// it, by the master's clock: commands of other connections rarely run between commands of
// one connection that arrive together.
func (m *masterInspection) timeBatch(b cluster.EncodedBatch, times int) (time.Duration, error) {
	out := resp.AppendCommand(nil, "TIME")
	for range times {
		out = append(out, b.Commands...)
	}
	out = resp.AppendCommand(out, "TIME")
	n := b.Replies*times + 2
	var begin, end time.Time
	err := m.conn.Exchange(out, n, func(i int, words []string) (err error) {
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
