package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/run"
)

const statsAbout = `Prints a line a second of what a running limitgate does: its clients, decisions and denials,
the share of decisions by the backstop, how long they took, and the version of its limits.

Usage: limitgate stats [flags]

The figures are those of that limitgate alone, since the line before. It goes on when the
limitgate restarts; Ctrl-C ends it.` + runningAbout

// stats is the state of a limitgate at one time. Counts are those since its start.
type stats struct {
	at                                     time.Time
	runID                                  string // of the process
	clients                                int64
	decisions, denied, wouldDeny, backstop int64
	took                                   map[float64]int64 // decisions by the most microseconds that they took
	limits                                 string
	stale                                  bool
}

// statsLine is what happened between two states. Rates are per second, and without a decision
// there are no shares and times.
type statsLine struct {
	At        time.Time `json:"at"`
	Clients   int64     `json:"clients"`
	Decisions float64   `json:"decisions_per_second"`
	Denied    float64   `json:"denied_per_second"`
	WouldDeny float64   `json:"would_deny_per_second"`
	Share     *float64  `json:"denied_percent"`
	Backstop  *float64  `json:"backstop_percent"`
	P50       *float64  `json:"p50_ms"`
	P99       *float64  `json:"p99_ms"`
	Limits    string    `json:"limits_version"`
	Stale     bool      `json:"limits_stale"`
}

func runStats(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "stats", statsAbout, "limitgate stats --addr 127.0.0.1:6380", "limitgate stats --every 5s --json")
	var flags runningFlags
	flags.define(env, fs, time.Second, "the time between two lines")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if fs.NArg() > 0 {
		mistake := mistakeOrAddr(fmt.Errorf("%s is not a flag: the time between two lines is --every 5s", config.Quote(fs.Arg(0))), fs)
		fmt.Fprintf(env.stderr, "limitgate stats: %v; limitgate stats --help lists the flags\n", mistake)
		return exitUsage
	}
	client, err := flags.newClient(flags.addr, flags.timeout, 2)
	if err == nil {
		err = checkEvery(flags.every)
	}
	if err != nil {
		return fail(env, fmt.Errorf("stats: %w", err))
	}
	defer func() { _ = client.Close() }()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	p := statsPrinter{w: env.stdout, asJSON: flags.asJSON}
	retries := retrier{env: env, name: "stats", flags: &flags}
	for {
		now, err := askStats(ctx, client, &flags)
		if !retries.retry(ctx, err) {
			return fail(env, fmt.Errorf("stats: %w", explainDial(flags.addr, err)))
		}
		if err == nil {
			err = p.print(now)
			if err != nil && ctx.Err() == nil {
				return fail(env, fmt.Errorf("stats: %w", err))
			}
		}
		if !run.Sleep(ctx, flags.every) {
			return exitOK
		}
	}
}

// askStats returns the present state of a limitgate.
func askStats(ctx context.Context, client *redis.Client, flags *runningFlags) (*stats, error) {
	ctx, cancel := context.WithTimeout(ctx, flags.timeout)
	defer cancel()
	text, err := client.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	return parseStats(text, flags.addr, time.Now())
}

// parseStats reads a reply of INFO.
func parseStats(text, addr string, at time.Time) (*stats, error) {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	_, isLimitgate := fields["limitgate_version"]
	_, counts := fields["limitgate_decisions"]
	switch {
	case !isLimitgate:
		return nil, fmt.Errorf("%s is no limitgate: name the address of one that serves, started by limitgate serve", addr)
	case !counts:
		return nil, errors.New("INFO has no decisions: name a user by --user that has +@read ~*, or ask a limitgate of a later release")
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(fields[name], 10, 64)
		return n
	}
	s := &stats{
		at: at, runID: fields["run_id"], clients: number("connected_clients"),
		decisions: number("limitgate_decisions"), denied: number("limitgate_denied"), wouldDeny: number("limitgate_would_deny"), backstop: number("limitgate_source_backstop"),
		took: map[float64]int64{}, limits: table.Printable(fields["limitgate_limits_version"]), stale: number("limitgate_limits_stale") > 0,
	}
	for part := range strings.SplitSeq(fields["limitgate_decision_usec"], ",") {
		most, count, _ := strings.Cut(part, "=")
		micros, err := strconv.ParseFloat(most, 64)
		n, errCount := strconv.ParseInt(count, 10, 64)
		if cmp.Or(err, errCount) == nil {
			s.took[micros] = n
		}
	}
	return s, nil
}

// since returns what happened since an earlier state of the same process.
func (s *stats) since(earlier *stats) *statsLine {
	seconds := max(s.at.Sub(earlier.at).Seconds(), 0.001)
	rate := func(n int64) float64 { return math.Round(float64(n)/seconds*10) / 10 }
	l := &statsLine{
		At: s.at, Clients: s.clients, Limits: s.limits, Stale: s.stale,
		Decisions: rate(s.decisions - earlier.decisions), Denied: rate(s.denied - earlier.denied), WouldDeny: rate(s.wouldDeny - earlier.wouldDeny),
		P50: s.quantile(0.5, earlier), P99: s.quantile(0.99, earlier),
	}
	if all := float64(s.decisions - earlier.decisions); all > 0 {
		percent := func(n int64) *float64 { return new(math.Round(float64(n)/all*1000) / 10) }
		l.Share, l.Backstop = percent(s.denied-earlier.denied), percent(s.backstop-earlier.backstop)
	}
	return l
}

// quantile returns an upper bound of the milliseconds that the share q of the decisions since an
// earlier state took, or nil if there are none.
func (s *stats) quantile(q float64, earlier *stats) *float64 {
	var total int64
	for most, n := range s.took {
		total += n - earlier.took[most]
	}
	rank := int64(math.Ceil(q * float64(total)))
	for _, most := range slices.Sorted(maps.Keys(s.took)) {
		if rank -= s.took[most] - earlier.took[most]; total > 0 && rank <= 0 {
			return new(math.Round(most) / 1000)
		}
	}
	return nil
}

// headerEvery is the number of lines below which the names of the columns are repeated.
const headerEvery = 20

// statsPrinter prints what happens between the states that it receives.
type statsPrinter struct {
	w       io.Writer
	asJSON  bool
	last    *stats
	printed int
}

// print prints a line, unless the state is the first one of its process.
func (p *statsPrinter) print(now *stats) error {
	last := p.last
	p.last = now
	if last == nil || last.runID != now.runID {
		return nil
	}
	line := now.since(last)
	if p.asJSON {
		return json.NewEncoder(p.w).Encode(line)
	}
	text := line.text()
	if p.printed%headerEvery == 0 {
		text = fmt.Sprintf(statsFormat, "CLIENTS", "DECISIONS/S", "DENIED/S", "DENIED", "BACKSTOP", "P50 MS", "P99 MS", "LIMITS") + text
	}
	p.printed++
	_, err := io.WriteString(p.w, text)
	return err
}

const statsFormat = "%7s  %11s  %9s  %6s  %8s  %7s  %7s  %s\n"

// text returns the line for people.
func (l *statsLine) text() string {
	optional := func(v *float64, format string) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf(format, *v)
	}
	limits := l.Limits
	if l.Stale {
		limits += " (stale)"
	}
	return fmt.Sprintf(statsFormat, strconv.FormatInt(l.Clients, 10), fmt.Sprintf("%.0f", l.Decisions), fmt.Sprintf("%.0f", l.Denied),
		optional(l.Share, "%.1f%%"), optional(l.Backstop, "%.1f%%"), optional(l.P50, "%.3f"), optional(l.P99, "%.3f"), limits)
}
