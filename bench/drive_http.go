package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/internal/servers"
)

// httpGate is a side that asks Limitgate over HTTP, or with an empty path by RL.CHECK.
type httpGate struct {
	gate
	path string
}

func (g httpGate) side() side {
	return side{name: g.name, open: func(ctx context.Context, l *lab) (driver, error) {
		store, err := l.backend(ctx, g.kind)
		if err != nil {
			return nil, err
		}
		proxy, err := l.startWith(nil, oneLimit, store, slices.Concat(patience, g.flags)...)
		if err != nil {
			return nil, err
		}
		d := &httpDriver{proxy: proxy, parts: parts{client: self(), proxy: []int{proxy.PID()}}, path: g.path}
		if store != nil {
			d.parts.store = store.pids()
		}
		for range g.traffic.conns {
			c, err := net.Dial("tcp", d.addr())
			if err != nil {
				return nil, errors.Join(fmt.Errorf("connect: %w", err), d.close())
			}
			d.conns = append(d.conns, c)
		}
		return d, nil
	}}
}

// httpDriver makes rounds over HTTP, one request at a time on each connection.
type httpDriver struct {
	proxy *servers.Limitgate
	parts parts
	path  string
	conns []net.Conn
}

func (d *httpDriver) addr() string {
	if d.path == "" {
		return d.proxy.Addr
	}
	return d.proxy.HTTP
}

func (d *httpDriver) close() error {
	for _, c := range d.conns {
		_ = c.Close()
	}
	return d.proxy.Close()
}

func (d *httpDriver) round(_ context.Context, length time.Duration) (*sample, error) {
	m, err := startMeter(d.parts)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	latencies := make([]*hdrhistogram.Histogram, len(d.conns))
	errs := make([]error, len(d.conns))
	var wg sync.WaitGroup
	for i, c := range d.conns {
		wg.Go(func() {
			latencies[i] = hdrhistogram.New(int64(time.Microsecond), int64(time.Minute), 3)
			errs[i] = d.ask(c, latencies[i], began.Add(length))
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s := sampleOfLatencies(latencies, time.Since(began).Seconds())
	return s, m.stop(s)
}

// ask sends requests on a connection until the end of a round.
func (d *httpDriver) ask(c net.Conn, latency *hdrhistogram.Histogram, end time.Time) error {
	in := bufio.NewReader(c)
	var request []byte
	for now := time.Now(); now.Before(end); {
		request = d.appendRequest(request[:0], rand.IntN(tenants))
		if _, err := c.Write(request); err != nil {
			return fmt.Errorf("send request: %w", err)
		}
		if err := d.read(in); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		answered := time.Now()
		if err := latency.RecordValue(answered.Sub(now).Nanoseconds()); err != nil {
			return fmt.Errorf("record latency: %w", err)
		}
		now = answered
	}
	return nil
}

// appendRequest appends a request for a tenant: that of a gateway, one of JSON, or RL.CHECK.
func (d *httpDriver) appendRequest(b []byte, tenant int) []byte {
	if d.path == "" {
		return resp.AppendCommand(b, "RL.CHECK", "t"+strconv.Itoa(tenant), "POST /v1/payments/7", "203.0.113.7", "1")
	}
	if d.path == "/check" {
		b = append(b, "GET /check?tenant=t"...)
		b = strconv.AppendInt(b, int64(tenant), 10)
		return append(b, " HTTP/1.1\r\nHost: limitgate\r\nX-Original-URI: /v1/payments/7?page=2\r\nX-Original-Method: POST\r\nX-Forwarded-For: 203.0.113.7\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"...)
	}
	body := strconv.AppendInt([]byte(`{"tenant":"t`), int64(tenant), 10)
	body = append(body, `","op":"POST /v1/payments","ip":"203.0.113.7","cost":1}`...)
	b = append(b, "POST "+d.path+" HTTP/1.1\r\nHost: limitgate\r\nContent-Type: application/json\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	return append(append(b, "\r\n\r\n"...), body...)
}

// read reads an answer that admits.
func (d *httpDriver) read(in *bufio.Reader) error {
	if d.path == "" {
		return readDecision(in)
	}
	return readAnswer(in)
}

// readDecision reads a reply to RL.CHECK, which is an array of five integers and two texts.
func readDecision(in *bufio.Reader) error {
	const lines = 1 + 5 + 2*2
	for n := range lines {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if n == 1 && string(line) != ":1\r\n" {
			return errNotAdmitted
		}
	}
	return nil
}

var errNotAdmitted = errors.New("the answer does not admit")

// readAnswer reads an answer, which has to be 200.
func readAnswer(in *bufio.Reader) error {
	length := 0
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		switch {
		case err != nil:
			return err
		case first && !bytes.Contains(line, []byte(" 200 ")):
			return errNotAdmitted
		case len(line) == 2:
			_, err := io.CopyN(io.Discard, in, int64(length))
			return err
		}
		if value, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
}
