package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// every is the time between two samples while a page is open, and idle while none is.
	every = time.Second
	idle  = 10 * time.Second
	// pointsKept is the number of points that a page receives when it opens: at least five minutes.
	pointsKept = 300
	// maxStreams bounds the open pages of a proxy. The admin address has 64 connections, which
	// probes and scrapers need, too.
	maxStreams = 32
	// writeTimeout bounds writing a sample to a page that does not read.
	writeTimeout = 5 * time.Second
)

// sampler reads the proxy and passes samples to the open pages.
type sampler struct {
	read    func() *Reading
	version string
	done    chan struct{} // closed when run has ended

	mu      sync.Mutex // guards the fields below
	last    []*Reading // the oldest first
	points  []timedPoint
	latest  []byte        // the last sample in JSON, nil before the first
	next    chan struct{} // closed when there is a newer one
	streams int
}

type timedPoint struct {
	At int64 `json:"at_ms"`
	Point
}

// run samples until ctx ends.
func (s *sampler) run(ctx context.Context) {
	defer close(s.done)
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	s.sample()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			if s.due(now) {
				s.sample()
			}
		}
	}
}

// due reports whether to sample now.
func (s *sampler) due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams > 0 || len(s.last) == 0 || now.Sub(s.last[len(s.last)-1].At) > idle-every/2
}

// sample takes one sample. The first reading makes none.
func (s *sampler) sample() {
	now := s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) > 0 {
		made := newSample(now, s.last[len(s.last)-1], s.last[0], s.version)
		s.points = append(s.points, timedPoint{made.At, made.Point})
		if len(s.points) > pointsKept {
			s.points = append(s.points[:0], s.points[1:]...)
		}
		s.latest, _ = json.Marshal(made) // it has no type that JSON lacks
		close(s.next)
		s.next = make(chan struct{})
	}
	s.last = append(s.last, now)
	for len(s.last) > 2 && now.At.Sub(s.last[1].At) > idle-every/2 { // rates are those of ten seconds
		s.last = append(s.last[:0], s.last[1:]...)
	}
}

// join counts a page that opens. It returns the points so far, and false if there are too many pages.
func (s *sampler) join() (points []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == maxStreams {
		return nil, false
	}
	s.streams++
	points, _ = json.Marshal(s.points)
	return points, true
}

func (s *sampler) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
}

// newest returns the last sample, and a channel that is closed when there is a newer one.
func (s *sampler) newest() (sample []byte, next chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest, s.next
}

// serve sends samples to a page as server-sent events until it is closed:
// https://html.spec.whatwg.org/multipage/server-sent-events.html
// It ends when the page may not be seen any more, which may reports before each sample.
func (s *sampler) serve(w http.ResponseWriter, r *http.Request, may func() bool) {
	points, ok := s.join()
	if !ok {
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d pages are open, which is the most: close one", maxStreams), http.StatusServiceUnavailable)
		return
	}
	defer s.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	send := func(event string, data []byte) bool {
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data)
		return err == nil && out.Flush() == nil
	}
	if !send("points", points) {
		return
	}
	for {
		sample, next := s.newest()
		if !may() || sample != nil && !send("sample", sample) {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.done: // the server waits for its streams when it drains
			return
		case <-next:
		}
	}
}
