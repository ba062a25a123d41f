package bench

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/limitgate/limitgate/internal/servers"
)

// redisBenchmarkDriver makes rounds with redis-benchmark.
type redisBenchmarkDriver struct {
	binary   string
	addr     string
	traffic  traffic
	words    []string
	parts    parts
	perRound float64 // requests a second of the last round
	also     io.Closer
}

// randomWord is the word that redis-benchmark replaces by a number.
const randomWord = "__rand_int__"

// firstRequests is the number of requests of each connection in the first round.
const firstRequests = 400

func (d *redisBenchmarkDriver) round(ctx context.Context, length time.Duration) (*sample, error) {
	n := firstRequests * d.traffic.conns
	if d.perRound > 0 {
		n = int(d.perRound * length.Seconds())
	}
	host, port, err := net.SplitHostPort(d.addr)
	if err != nil {
		return nil, fmt.Errorf("read address: %w", err)
	}
	args := []string{
		"-h", host, "-p", port, "-c", strconv.Itoa(d.traffic.conns), "-P", strconv.Itoa(d.traffic.pipeline),
		"-n", strconv.Itoa(n), "-r", strconv.Itoa(tenants), "--csv",
	}
	command := exec.CommandContext(ctx, d.binary, append(args, d.words...)...)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	m, err := startMeter(d.parts)
	if err != nil {
		return nil, err
	}
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("run redis-benchmark: %w: %s %s", err, out, &complaints)
	}
	s, err := parseRedisBenchmark(out)
	if err != nil {
		return nil, err
	}
	s.decisions, s.seconds = int64(n), float64(n)/s.perSecond
	d.perRound = s.perSecond
	m.own = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return s, m.stop(s)
}

func (d *redisBenchmarkDriver) close() error {
	if d.also != nil {
		return d.also.Close()
	}
	return nil
}

// parseRedisBenchmark parses the output of redis-benchmark --csv: names of columns and
// then one test.
func parseRedisBenchmark(out []byte) (*sample, error) {
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read output of redis-benchmark: %w", err)
	}
	if len(rows) != 2 {
		return nil, fmt.Errorf("read output of redis-benchmark: %d lines, not 2: %.200q", len(rows), out)
	}
	s := &sample{p999: absent}
	for name, to := range map[string]*float64{"rps": &s.perSecond, "p50_latency_ms": &s.p50, "p99_latency_ms": &s.p99} {
		found := false
		for i, column := range rows[0] {
			if column != name {
				continue
			}
			if *to, err = strconv.ParseFloat(rows[1][i], 64); err != nil {
				return nil, fmt.Errorf("read output of redis-benchmark: %w", err)
			}
			found = true
		}
		if !found {
			return nil, fmt.Errorf("read output of redis-benchmark: no column %s in %.200q", name, out)
		}
	}
	if s.perSecond <= 0 {
		return nil, fmt.Errorf("read output of redis-benchmark: it took no time: %.200q", out)
	}
	return s, nil
}

// byRedisBenchmark is a side under the load of redis-benchmark: a limitgate on a store
// for RL.CHECK, or Redis for other words.
func byRedisBenchmark(name string, k kind, proxied bool, t traffic, words ...string) side {
	return side{name: name, open: func(ctx context.Context, l *lab) (driver, error) {
		binary, err := servers.Binary("redis-benchmark")
		if err != nil {
			return nil, err
		}
		d := &redisBenchmarkDriver{binary: binary, traffic: t}
		for _, w := range words {
			d.words = append(d.words, strings.ReplaceAll(w, "KEY", "t"+randomWord))
		}
		store, err := l.backend(ctx, k)
		if err != nil {
			return nil, err
		}
		if store != nil {
			d.addr, d.parts.store = store.nodes[0].Addr, store.pids()
		}
		if !proxied {
			return d, nil
		}
		proxy, err := l.start(oneLimit, store, patience...)
		if err != nil {
			return nil, err
		}
		d.addr, d.also, d.parts.proxy = proxy.Addr, proxy, []int{proxy.PID()}
		return d, nil
	}}
}
