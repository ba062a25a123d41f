package dashboard

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
	"github.com/limitgate/limitgate/metrics"
)

// empty returns a reading of a proxy that has decided nothing.
func empty() *Reading { return &Reading{At: time.Now(), Latencies: new(latency.Snapshot)} }

// newPage returns a dashboard of a limiter with one limit, and its handlers. The file of users may
// be empty: then clients need none.
func newPage(t *testing.T, file string) (*Dashboard, *http.ServeMux) {
	t.Helper()
	set := storetest.Compile(t, storetest.Spec{ID: "few", By: []string{"tenant"}, Rate: "2/h"})
	o := commands.Options{Limiter: limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Timeout: time.Second}, set)}
	if file != "" {
		set, err := users.Parse([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		o.Users = users.NewAuthenticator(set, nil)
	}
	d := New(Options{Read: empty, Handler: commands.NewHandler(o), History: NewHistory("limits.yaml", set), CellLimits: func() []CellLimit { return nil }, Version: "test"})
	mux := http.NewServeMux()
	d.Register(mux)
	return d, mux
}

func get(mux http.Handler, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Host = "127.0.0.1:9180"
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

// TestFiles checks that every file is served with a policy that allows no other source, and that
// no file names one or has code in its markup.
func TestFiles(t *testing.T) {
	d, mux := newPage(t, "")
	for name, f := range d.files {
		w := get(mux, name)
		if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), f.content) || w.Header().Get("Content-Type") == "" || w.Header().Get("Content-Security-Policy") != policy {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
		if again := get(mux, name, func(r *http.Request) { r.Header.Set("If-None-Match", w.Header().Get("ETag")) }); again.Code != http.StatusNotModified {
			t.Errorf("%s: %d for a file that the browser has", name, again.Code)
		}
		text := bytes.ReplaceAll(f.content, []byte("http://www.w3.org/2000/svg"), nil) // a name, which is not loaded
		if found := regexp.MustCompile(`https?://|\sstyle=|\son[a-z]+=|innerHTML|\beval\b`).FindAll(text, -1); found != nil {
			t.Errorf("%s has %q", name, found)
		}
	}
	if w := get(mux, "/assets/"); w.Code != http.StatusNotFound {
		t.Errorf("another path: %d", w.Code)
	}
}

// TestIDs checks that the code finds every element that it names.
func TestIDs(t *testing.T) {
	d, _ := newPage(t, "")
	page := string(d.files["/index.html"].content)
	for name, f := range d.files {
		for _, m := range regexp.MustCompile(`(?:byId|getElementById)\("([a-z0-9-]+)"\)`).FindAllSubmatch(f.content, -1) {
			if strings.Count(page, fmt.Sprintf(`id="%s"`, m[1])) != 1 {
				t.Errorf("%s names the element %s, which index.html has not once", name, m[1])
			}
		}
	}
}

// TestUsers checks that only users with @read and all tenants see anything, and that other sites'
// pages do not.
func TestUsers(t *testing.T) {
	const secret = "a password of the test 0123456789abcdef"
	_, mux := newPage(t, fmt.Sprintf("user ops on #%[1]x ~* +@read\nuser one on #%[1]x ~acme +@read\nuser checks on #%[1]x ~* +@check\n", sha256.Sum256([]byte(secret))))
	as := func(name, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(name, password) }
	}
	for _, path := range []string{"/", "/page.js", "/api/limits", "/api/explain?tenant=acme", "/api/history?limit=few", "/api/cells", "/api/simulate", "/api/events"} {
		for who, request := range map[string]func(*http.Request){
			"nobody": func(*http.Request) {}, "a wrong password": as("ops", "wrong"), "one tenant": as("one", secret), "another group": as("checks", secret),
		} {
			if w := get(mux, path, request); w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%s as %s: %d %s", path, who, w.Code, w.Body)
			}
		}
		if path == "/api/events" {
			continue // which does not end
		}
		if w := get(mux, path, as("ops", secret)); w.Code != http.StatusOK {
			t.Errorf("%s as ops: %d %s", path, w.Code, w.Body)
		}
		if w := get(mux, path, as("ops", secret), func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }); w.Code != http.StatusForbidden {
			t.Errorf("%s for another site: %d", path, w.Code)
		}
	}
}

// TestNames checks that a name of another site, which leads here, does not show the page without a
// password.
func TestNames(t *testing.T) {
	_, mux := newPage(t, "")
	for host, want := range map[string]int{
		"127.0.0.1:9180": 200, "[::1]:9180": 200, "[::1]": 200, "localhost:9180": 200, "limitgate": 200, "limitgate.default.svc:9180": 200, "10-0-0-1.default.pod.cluster.local": 200,
		"attacker.example": 403, "attacker.example:9180": 403, "127.0.0.1.attacker.example": 403, "localhost.attacker.example": 403, "local.example:1": 403,
	} {
		if w := get(mux, "/api/limits", func(r *http.Request) { r.Host = host }); w.Code != want {
			t.Errorf("%s: %d, want %d", host, w.Code, want)
		}
	}
}

// TestExplain checks that the form gets what RL.EXPLAIN answers, and the sentence of an error.
func TestExplain(t *testing.T) {
	_, mux := newPage(t, "")
	for path, want := range map[string]string{
		"/api/explain?tenant=acme":                        `"allowed":true,"limit_id":"few","limit":2,"remaining":1`,
		"/api/explain?tenant=acme&op=&ip=&cost=3":         `"allowed":false,"limit_id":"few","limit":2,"remaining":2`,
		"/api/explain?tenant=acme&ip=nowhere":             `{"error":"ERR invalid ip 'nowhere'`,
		"/api/explain?tenant=acme&dim=user:ann":           `{"error":"a dimension is NAME=VALUE`,
		"/api/explain?tenant=acme&dim=user=ann":           `"tenant":"acme"`,
		"/api/explain?tenant=a%0d%0ab&op=%00":             `{"error":"ERR invalid tenant`,
		"/api/explain?tenant=":                            `{"error":"ERR `,
		"/api/explain?tenant=a&cost=1%20ID%20x":           `{"error":"ERR `,
		"/api/explain?tenant=%3Cscript%3E&op=%22%3E":      `"tenant":"\u003cscript\u003e"`,
		"/api/explain?tenant=" + strings.Repeat("x", 300): `{"error":"ERR invalid tenant`,
	} {
		if w := get(mux, path); !strings.Contains(w.Body.String(), want) || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, want)
		}
	}
}

// TestSimulation compares the counts with a token bucket and windows computed by hand.
func TestSimulation(t *testing.T) {
	_, mux := newPage(t, "")
	// bucket counts the admitted requests of a token bucket in whole numbers: time in 1/40 s.
	bucket := func(capacity, rate, arrivals, seconds int) (allowed int) {
		units := capacity * 1000
		for i := range arrivals * seconds {
			if i > 0 {
				units = min(capacity*1000, units+rate*1000/arrivals)
			}
			if units >= 1000 {
				units -= 1000
				allowed++
			}
		}
		return allowed
	}
	for query, want := range map[string][2]int{
		"":                     {bucket(10, 5, 8, 20), 160 - bucket(10, 5, 8, 20)},
		"?capacity=100&rate=5": {160, 0},
		"?capacity=1&rate=1&arrivals=8&seconds=8": {8, 56},
		"?pattern=bursts":                         {5 * 10, 5 * 22}, // 32 every four seconds, which is longer than it takes to fill
		"?algorithm=fixed_window":                 {100, 60},        // ten of 16 in each two seconds
		"?algorithm=fixed_window&arrivals=4":      {80, 0},
		"?algorithm=sliding_log":                  {100, 60},
	} {
		var got Simulation
		if w := get(mux, "/api/simulate"+query); w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &got) != nil {
			t.Fatalf("%s: %d %s", query, w.Code, w.Body)
		}
		if got.Allowed != want[0] || got.Denied != want[1] || len(got.Requests) != want[0]+want[1] {
			t.Errorf("%s: %d admitted and %d denied, want %v", query, got.Allowed, got.Denied, want)
		}
	}
	var poisson Simulation
	if err := json.Unmarshal(get(mux, "/api/simulate?pattern=poisson&seconds=100&seed=7").Body.Bytes(), &poisson); err != nil || math.Abs(float64(len(poisson.Requests))-800) > 150 {
		t.Errorf("%d requests of Poisson arrivals, want about 800: %v", len(poisson.Requests), err)
	}
}

// TestSimulationBounds checks that no parameter costs more than its bound.
func TestSimulationBounds(t *testing.T) {
	_, mux := newPage(t, "")
	for query, want := range map[string]string{
		"?capacity=0": "capacity is a whole number from 1 to 1000000", "?capacity=9223372036854775807": "capacity is", "?rate=-1": "rate is",
		"?arrivals=NaN": "arrivals is a number", "?arrivals=Inf": "arrivals is", "?arrivals=1e300": "arrivals is", "?arrivals=0.00001": "arrivals is",
		"?arrivals=5000&seconds=600": "are more than 5000 requests", "?seconds=601": "seconds is", "?pattern=x": "is no pattern",
		"?algorithm=none": "is not one of", "?algorithm=concurrency": "", "?seed=x": "seed is",
	} {
		w := get(mux, "/api/simulate"+query)
		var got struct{ Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusBadRequest || !strings.Contains(got.Error, want) {
			t.Errorf("%s: %d %s, want %s", query, w.Code, w.Body, want)
		}
	}
	if w := get(mux, "/api/simulate?arrivals=5000&seconds=1&pattern=bursts"); w.Code != http.StatusOK || strings.Count(w.Body.String(), "at_ms") > maxSimulated {
		t.Errorf("%d, %d requests", w.Code, strings.Count(w.Body.String(), "at_ms"))
	}
}

// TestSimulationsAtOnce checks that one simulation runs at a time, and that a form waits for it a second.
func TestSimulationsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, mux := newPage(t, "")
		d.simulating <- struct{}{} // as another one does
		begin := time.Now()
		w := get(mux, "/api/simulate")
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" || !json.Valid(w.Body.Bytes()) || time.Since(begin) != simulationWait {
			t.Errorf("after %s: %d %v %s", time.Since(begin), w.Code, w.Header(), w.Body)
		}
		codes := make(chan int)
		for range 5 {
			go func() { codes <- get(mux, "/api/simulate").Code }()
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if w := get(mux, "/api/simulate", func(r *http.Request) { *r = *r.WithContext(gone) }); w.Code != http.StatusServiceUnavailable {
			t.Errorf("a page that has left received %d %s", w.Code, w.Body)
		}
		time.Sleep(simulationWait / 2)
		<-d.simulating
		for range 5 {
			if code := <-codes; code != http.StatusOK {
				t.Errorf("a simulation behind another one: %d", code)
			}
		}
	})
}

// TestRates checks the arithmetic of a sample.
func TestRates(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	reading := func(seconds int, n int64) *Reading {
		r := &Reading{At: at.Add(time.Duration(seconds) * time.Second), Latencies: new(latency.Snapshot), Totals: []metrics.Total{
			{Limit: "a", Source: "store", Count: 10 * n},
			{Limit: "a", Source: "lease", Count: 20 * n},
			{Limit: "a", Source: "store", Denies: true, Count: 5 * n},
			{Limit: "dark", Source: "store", Shadow: true, Denies: true, Count: n},
			{Limit: "dark", Source: "store", Shadow: true, Count: 3 * n},
		}, LeaseRefreshes: 2 * n}
		r.Store.Shards = []Shard{{Addr: "x:1", Breaker: "closed", Calls: 10 * n, Checks: 40 * n, RoundTrip: new(latency.Snapshot)}}
		return r
	}
	s := newSample(reading(10, 110), reading(9, 100), reading(0, 10), "v")
	if s.Decisions != 350 || s.Denied != 50 || s.WouldDeny != 10 {
		t.Errorf("the last second: %+v", s.Point)
	}
	if want := (LimitRate{ID: "a", Allowed: 300, Denied: 50}); s.LimitRates[0] != want {
		t.Errorf("got %+v, want %+v", s.LimitRates[0], want)
	}
	if want := (LimitRate{ID: "dark", WouldDeny: 10, WouldAllow: 30}); s.LimitRates[1] != want {
		t.Errorf("got %+v, want %+v", s.LimitRates[1], want)
	}
	if s.Sources["store"] != 150 || s.Sources["lease"] != 200 || s.LeaseRefreshes != 0.1 {
		t.Errorf("sources %v, %g refreshes", s.Sources, s.LeaseRefreshes)
	}
	if sh := s.Shards[0]; sh.Calls != 100 || sh.Checks != 400 {
		t.Errorf("shard %+v", sh)
	}
	if s := newSample(reading(10, 5), reading(9, 5), empty(), "v"); s.Shards[0].Calls != 0 {
		t.Errorf("a master without an earlier reading has a rate: %+v", s.Shards[0])
	}
}

// TestStreams checks that every page gets each sample and the points so far, that there is a bound,
// and that streams end with Run.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := New(Options{Read: empty, Version: "test"})
		ended := make(chan error)
		go func() { ended <- d.Run(ctx) }()
		time.Sleep(10*time.Second + 1)
		bodies := make(chan string)
		for range maxStreams + 3 {
			go func() {
				w := httptest.NewRecorder()
				d.sampler.serve(w, httptest.NewRequest(http.MethodGet, "/api/events", http.NoBody).WithContext(t.Context()), always)
				bodies <- fmt.Sprint(w.Code, " ", w.Body)
			}()
		}
		for range 3 {
			if body := <-bodies; !strings.HasPrefix(body, "503 32 pages are open") {
				t.Errorf("one page too many: %s", body)
			}
		}
		time.Sleep(5 * time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for range maxStreams {
			body := <-bodies
			if !strings.HasPrefix(body, "200 event: points\ndata: [{") || strings.Count(body, "event: sample\n") != 6 {
				t.Errorf("got %d samples: %.200s", strings.Count(body, "event: sample\n"), body)
			}
		}
	})
}

// always is the right to see the page.
func always() bool { return true }

// TestPagesLeave checks that a page which leaves makes room, and that one ends whose user may not see
// it any more.
func TestPagesLeave(t *testing.T) {
	d := New(Options{Read: empty, Version: "test"})
	gone, leave := context.WithCancel(t.Context())
	leave()
	for i := range 2 * maxStreams {
		w := httptest.NewRecorder()
		d.sampler.serve(w, httptest.NewRequest(http.MethodGet, "/api/events", http.NoBody).WithContext(gone), always)
		if w.Code != http.StatusOK {
			t.Fatalf("page %d: %d %s", i, w.Code, w.Body)
		}
	}
	d.sampler.sample()
	d.sampler.sample()
	w := httptest.NewRecorder()
	d.sampler.serve(w, httptest.NewRequest(http.MethodGet, "/api/events", http.NoBody), func() bool { return false })
	if strings.Contains(w.Body.String(), "event: sample") {
		t.Errorf("a user without rights received %s", w.Body)
	}
}

// TestStreamOfAServer checks a stream through a real server, whose write timeout is shorter.
func TestStreamOfAServer(t *testing.T) {
	d, mux := newPage(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	srv := httptest.NewUnstartedServer(mux)
	srv.Config.WriteTimeout, srv.Config.ReadTimeout = 500*time.Millisecond, 500*time.Millisecond
	srv.Start()
	defer srv.Close()
	page, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(page, http.MethodGet, srv.URL+"/api/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	in := bufio.NewReader(reply.Body)
	for range 3 {
		for line := ""; !strings.HasPrefix(line, "event: sample"); {
			if line, err = in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
	leave()
	_, _ = io.Copy(io.Discard, in)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// BenchmarkSample measures what a second costs a proxy with a hundred limits.
func BenchmarkSample(b *testing.B) {
	r := empty()
	for i := range 100 {
		for _, source := range []string{"store", "lease", "cache", "backstop"} {
			r.Totals = append(r.Totals, metrics.Total{Limit: fmt.Sprint("limit", i), Source: source, Count: int64(i)}, metrics.Total{Limit: fmt.Sprint("limit", i), Source: source, Denies: true, Count: int64(i)})
		}
	}
	s := sampler{read: func() *Reading { return r }, next: make(chan struct{})}
	for b.Loop() {
		s.sample()
	}
}
