package rlsxds

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// node is the id of the client for which the servers have snapshots.
const node = "envoy-ratelimit"

// snapshots is the server of Envoy Gateway: a cache of snapshots.
type snapshots struct {
	record
	discovery.AggregatedDiscoveryServiceServer
	cache cache.SnapshotCache
}

func newSnapshots(t testing.TB) *snapshots {
	s := &snapshots{cache: cache.NewSnapshotCache(false, cache.IDHash{}, nil)}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	s.AggregatedDiscoveryServiceServer = server.NewServer(ctx, s.cache, server.CallbackFuncs{
		StreamOpenFunc: func(ctx context.Context, _ int64, _ string) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.headers, _ = metadata.FromIncomingContext(ctx)
			return nil
		},
		StreamRequestFunc: func(_ int64, r *discovery.DiscoveryRequest) error {
			s.add(r)
			return nil
		},
	})
	return s
}

// set replaces the resources. The bytes of each are those of a message that has its text as field 1.
func (s *snapshots) set(t testing.TB, version string, texts ...string) {
	t.Helper()
	items := map[string]types.ResourceWithTTL{}
	for i, text := range texts {
		items[fmt.Sprint(i)] = types.ResourceWithTTL{Resource: wrapperspb.String(text)}
	}
	all := new(cache.Snapshot)
	all.Resources[types.RateLimitConfig] = cache.Resources{Version: version, Items: items}
	if err := s.cache.SetSnapshot(t.Context(), node, all); err != nil {
		t.Fatal(err)
	}
}

// field returns the bytes of a resource that set makes of a text.
func field(text string) string { return "\x0a" + string(rune(len(text))) + text }

// TestSnapshots checks that the resources of the server's cache are applied and accepted, and that the server
// receives the node and the headers.
func TestSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := new(network), newSnapshots(t)
		n.serve(t, s)
		c, a, log := newClient(t, n, Options{
			NodeID: node, Metadata: map[string]any{"zone": "a", "weights": []any{1, true}},
			Headers: map[string]string{"X-Token": "hunter2", "extra-bin": "\x00\xff"},
		})
		defer start(t, c)()
		rest()
		if got := c.Status(); !got.Connected || got.Loaded || got.Err != nil {
			t.Errorf("without resources the status is %+v", got)
		}
		first := s.next(t)
		if first.GetNode().GetId() != node || first.GetNode().GetUserAgentName() != "limitgate" || first.GetTypeUrl() != configType ||
			first.GetVersionInfo() != "" || first.GetResponseNonce() != "" || len(first.GetResourceNames()) != 0 {
			t.Errorf("the first request is %v", first)
		}
		if data := first.GetNode().GetMetadata().AsMap(); !reflect.DeepEqual(data, map[string]any{"zone": "a", "weights": []any{1.0, true}}) {
			t.Errorf("the metadata are %v", data)
		}
		if s.headers.Get("x-token")[0] != "hunter2" || s.headers.Get("extra-bin")[0] != "\x00\xff" || s.headers.Get("user-agent")[0][:9] != "limitgate" {
			t.Errorf("the headers are %v", s.headers)
		}
		for i, texts := range [][]string{{"a", "b", "c"}, {"a"}, {}, {"b", "c"}} {
			version := fmt.Sprint(i + 1)
			s.set(t, version, texts...)
			rest()
			var want []string
			for _, text := range texts {
				want = append(want, field(text))
			}
			a.expect(t, i+1, want...)
			if r := s.next(t); r.GetVersionInfo() != version || r.GetResponseNonce() == "" || r.GetErrorDetail() != nil || r.GetTypeUrl() != configType {
				t.Errorf("the answer is %v", r)
			}
			if got, want := c.Status(), (Status{Connected: true, Loaded: true, Version: version, Accepted: int64(i + 1)}); got != want {
				t.Errorf("the status is %+v, want %+v", got, want)
			}
		}
		if text := log.String(); strings.Count(text, "\n") != 5 || !strings.Contains(text, `msg="limits of the xDS server applied" server=xds.example:18001 version=1 domains=3 accepted=1`) || strings.Contains(text, "hunter2") {
			t.Errorf("the log is %s", text)
		}
	})
}

// TestRejection checks that the server receives the reason and the version in use, that the resources in
// force stay, and that the next ones are taken.
func TestRejection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := new(network), newSnapshots(t)
		n.serve(t, s)
		var refusal atomic.Pointer[string]
		a := new(applied)
		c, _, log := newClient(t, n, Options{NodeID: node, Apply: func(resources [][]byte) error {
			if text := refusal.Load(); text != nil {
				return errors.New(*text)
			}
			return a.apply(resources)
		}})
		defer start(t, c)()
		s.set(t, "one", "a")
		rest()
		s.next(t)
		s.next(t)
		refusal.Store(new(strings.Repeat("é", maxReason) + "\xff"))
		s.set(t, "two", "b", "c")
		rest()
		refused := s.next(t)
		detail := refused.GetErrorDetail()
		if refused.GetVersionInfo() != "one" || refused.GetResponseNonce() == "" || detail.GetCode() != int32(codes.InvalidArgument) ||
			!strings.HasPrefix(detail.GetMessage(), "ééé") || !strings.HasSuffix(detail.GetMessage(), "é...") || len(detail.GetMessage()) > maxReason {
			t.Errorf("the refusal is %v", refused)
		}
		a.expect(t, 1, field("a"))
		got := c.Status()
		if got.Err == nil || got.Err.Error() != detail.GetMessage() || got.Version != "one" || got.Accepted != 1 || got.Rejected < 1 || !got.Connected {
			t.Errorf("the status is %+v", got)
		}
		time.Sleep(time.Minute) // the server's cache sends the refused resources again at each refusal
		if n := c.Status().Rejected; n < 50 || n > 63 {
			t.Errorf("%d rejections in a minute", n)
		}
		s.set(t, "three", "d")
		rest() // the last of the refused ones are on their way
		refusal.Store(nil)
		rest()
		a.expect(t, 2, field("d"))
		if got := c.Status(); got.Err != nil || got.Version != "three" {
			t.Errorf("the status is %+v", got)
		}
		if text := log.String(); strings.Count(text, "rejected limits") != 1 || !strings.Contains(text, "version=one rejected=two error=ééé") {
			t.Errorf("the log is %s", text)
		}
	})
}

// TestRestart checks that the resources stay in force while there is no server, and that the first request
// of the next stream has their version.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := new(network), newSnapshots(t)
		stop := n.serve(t, s)
		c, a, log := newClient(t, n, Options{NodeID: node})
		defer start(t, c)()
		s.set(t, "one", "a")
		rest()
		stop()
		time.Sleep(10 * time.Minute)
		a.expect(t, 1, field("a"))
		if got := c.Status(); got.Connected || got.Version != "one" || !got.Loaded || got.Err == nil || !strings.Contains(got.Err.Error(), "connection refused") {
			t.Errorf("the status is %+v", got)
		}
		s = newSnapshots(t)
		s.set(t, "two", "b")
		n.serve(t, s)
		time.Sleep(DefaultMaxBackoff)
		rest()
		if r := s.next(t); r.GetVersionInfo() != "one" || r.GetResponseNonce() != "" || r.GetNode().GetId() != node || r.GetErrorDetail() != nil {
			t.Errorf("the first request is %v", r)
		}
		if r := s.next(t); r.GetVersionInfo() != "two" || r.GetResponseNonce() == "" {
			t.Errorf("the answer is %v", r)
		}
		a.expect(t, 2, field("b"))
		if got, want := c.Status(), (Status{Connected: true, Loaded: true, Version: "two", Accepted: 2}); got != want {
			t.Errorf("the status is %+v, want %+v", got, want)
		}
		// Connected, applied, the stream's end, an attempt that failed, connected, applied.
		if text := log.String(); strings.Count(text, "\n") != 6 || strings.Count(text, "no connection") != 2 || !strings.Contains(text, "loaded=true version=one") {
			t.Errorf("the log is %s", text)
		}
	})
}

// TestVersionsBeginAnew checks a server that numbers its versions from 1 after each start, as Envoy Gateway
// does, and receives the first request before it has resources. A client that names the version in use then
// misses the resources of the same number; one that forgets it does not.
func TestVersionsBeginAnew(t *testing.T) {
	for _, forget := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n, s := new(network), newSnapshots(t)
			stop := n.serve(t, s)
			c, a, _ := newClient(t, n, Options{NodeID: node, ForgetVersion: forget})
			defer start(t, c)()
			s.set(t, "1", "a")
			rest()
			stop()
			s = newSnapshots(t)
			n.serve(t, s)
			time.Sleep(DefaultMaxBackoff)
			if got, want := c.Status(), (Status{Connected: true, Loaded: true, Version: "1", Accepted: 1}); got != want {
				t.Errorf("the status is %+v, want %+v", got, want)
			}
			s.set(t, "1", "b")
			rest()
			if r := s.next(t); (r.GetVersionInfo() == "") != forget {
				t.Errorf("the first request is %v", r)
			}
			if forget {
				a.expect(t, 2, field("b"))
			} else {
				a.expect(t, 1, field("a"))
			}
		})
	}
}
