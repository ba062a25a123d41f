package rlsxds

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/limitgate/limitgate/internal/run"
)

// raw is a message as it is sent.
type raw []byte

// rawCodec is the codec of a server that sends raw messages too.
type rawCodec struct{ codec }

// Marshal implements encoding.Codec.
func (c rawCodec) Marshal(v any) ([]byte, error) {
	if bytes, ok := v.(raw); ok {
		return bytes, nil
	}
	return c.codec.Marshal(v)
}

// Unmarshal implements encoding.Codec.
func (rawCodec) Unmarshal(data []byte, v any) error { return proto.Unmarshal(data, v.(proto.Message)) }

// sends returns a play that sends messages.
func sends(all ...any) func(s serverStream) error {
	return func(s serverStream) error {
		for _, one := range all {
			if err := s.SendMsg(one); err != nil {
				return err
			}
		}
		return nil
	}
}

// silent returns a play that sends nothing for a time.
func silent(d time.Duration) func(s serverStream) error {
	return func(s serverStream) error {
		if !run.Sleep(s.Context(), d) {
			return s.Context().Err()
		}
		return nil
	}
}

// many returns n different texts.
func many(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprint(i))
	}
	return texts
}

// otherType returns a response that is of another type.
func otherType(kind string) *discovery.DiscoveryResponse {
	r := answer("v", "n", "a")
	r.TypeUrl = kind
	return r
}

// otherResource returns a response with a resource that is of another type.
func otherResource(one *anypb.Any) *discovery.DiscoveryResponse {
	r := answer("v", "n", "a")
	r.Resources = append(r.Resources, one)
	return r
}

const clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// hostile are the behaviours of servers that do not end a stream, or do, and the reason that is reported.
var hostile = map[string]struct {
	play func(s serverStream) error
	ends bool
	want string
}{
	"another type":             {sends(otherType(clusterType)), false, `not a RateLimitConfig: the response is of "type.googleapis.com/envoy.config.cluster.v3.Cluster"`},
	"no type":                  {sends(otherType("")), false, `the response is of ""`},
	"a long type":              {sends(otherType(strings.Repeat("x", 1<<20))), false, `the response is of "` + strings.Repeat("x", 100) + `"`},
	"a resource of its own":    {sends(otherResource(&anypb.Any{TypeUrl: clusterType})), false, `resource 2 is of "type.googleapis.com/envoy.config.cluster.v3.Cluster"`},
	"an empty resource":        {sends(otherResource(&anypb.Any{})), false, `resource 2 is of ""`},
	"a resource twice":         {sends(answer("v", "n", "a", "b", "a")), false, "two resources are equal"},
	"a resource twice alone":   {sends(answer("v", "n", "a", "a")), false, "two resources are equal"},
	"many resources":           {sends(answer("v", "n", many(maxResources+1)...)), false, "there are more than 10000 resources"},
	"many empty resources":     {sends(raw("\x22" + string(rune(len(configType))) + configType + strings.Repeat("\x12\x00", 2<<20-100))), false, "there are more than 10000 resources"},
	"refused ones":             {sends(answer("v", "n", "a", "bad a"), answer("w", "m", "bad b")), false, "refused b"},
	"refused ones of one name": {sends(answer("v", "n", "bad a"), answer("v", "n", "bad a"), answer("v", "", "bad b")), false, "refused b"},
	"an empty message":         {sends(raw(nil)), false, `the response is of ""`},
	"unknown fields":           {sends(raw("\xf8\x07\x01\xf2\x07\x01x")), false, `the response is of ""`},
	"silence":                  {silent(24 * time.Hour), false, ""},
	"garbage":                  {sends(raw("\xff\xff\xff\xff")), true, "parse response: "},
	"half a message":           {sends(raw("\x0a\x05v")), true, "parse response: "},
	"half a resource":          {sends(raw("\x12\x02\x0a\x05")), true, "parse response: "},
	"half a resource late":     {sends(raw(strings.Repeat("\x12\x00", maxResources+1) + "\x12\x02\x0a\x05")), true, "parse response: "},
	"a nonce of 2 KiB":         {sends(answer("v", strings.Repeat("n", maxWord+1))), true, "its version or nonce is not UTF-8 of at most 1024 bytes"},
	"a version of bytes":       {sends(raw("\x0a\x01\xff")), true, "its version or nonce is not UTF-8"},
	"a huge message":           {sends(answer("v", "n", strings.Repeat("x", DefaultMaxMessage))), true, "received message larger than max"},
	"an end":                   {func(serverStream) error { return errEnd }, true, "read response: the server ended the stream"},
	"no such method":           {func(serverStream) error { return status.Error(codes.Unimplemented, "here is no ADS") }, true, "here is no ADS"},
	"a long error":             {func(serverStream) error { return status.Error(codes.Internal, strings.Repeat("é", 10_000)) }, true, "ééé..."},
}

// errEnd makes a server end a stream without an error.
var errEnd = errors.New("the end")

// TestHostile checks that each behaviour is reported and changes nothing, and that the next resources are
// taken, on the same stream or on the next one.
func TestHostile(t *testing.T) {
	for name, row := range hostile {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, streams, seen := new(network), 0, new(record)
				n.serve(t, script{play: func(s serverStream) error {
					first, err := s.Recv()
					if err != nil {
						return err
					}
					seen.add(first)
					if streams++; streams == 1 {
						if err := row.play(s); err != nil {
							return endOf(err)
						}
					}
					if err := silent(time.Hour)(s); err != nil {
						return err
					}
					if err := s.Send(answer("good", "g", "good")); err != nil {
						return err
					}
					return keep(s)
				}}, grpc.ForceServerCodec(rawCodec{}))
				c, a, log := newClient(t, n, Options{})
				defer start(t, c)()
				time.Sleep(4 * refusalPause)
				if got := c.Status(); (got.Err == nil) != (row.want == "") || got.Err != nil && !strings.Contains(got.Err.Error(), row.want) ||
					got.Connected == row.ends || got.Accepted != 0 || (got.Rejected > 0) == (row.ends || row.want == "") {
					t.Errorf("the status is %+v", got)
				}
				if text := log.String(); len(text) > 6<<10 || strings.Count(text, "\n") > 4 {
					t.Errorf("the log is %s", text)
				}
				a.expect(t, 0)
				time.Sleep(26 * time.Hour)
				a.expect(t, 1, "good")
				if got := c.Status(); got.Err != nil || !got.Connected || got.Version != "good" || (streams > 1) != row.ends {
					t.Errorf("after %d streams the status is %+v", streams, got)
				}
			})
		})
	}
}

// endOf returns the error with which a play ends its stream.
func endOf(err error) error {
	if errors.Is(err, errEnd) {
		return nil
	}
	return err
}

// TestFlood checks that a server that sends all the time, and reads nothing, has ten updates a second applied,
// in order, and that it waits meanwhile.
func TestFlood(t *testing.T) {
	for name, row := range map[string]struct {
		takes       time.Duration // of Apply
		text        string        // of the updates
		least, most int64         // updates in a minute
	}{
		"accepted": {0, "%d", 550, 601},
		"slow":     {time.Second, "%d", 29, 31},
		"rejected": {0, "bad %d", 55, 61},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, a := new(network), new(applied)
				var sent, calls, disorder atomic.Int64
				n.serve(t, script{play: func(s serverStream) error {
					for {
						text := fmt.Sprintf(row.text, sent.Add(1)) + strings.Repeat(" ", 1<<10)
						if err := s.Send(answer("v", "n", text)); err != nil {
							return err
						}
					}
				}})
				c, _, log := newClient(t, n, Options{Apply: func(resources [][]byte) error {
					time.Sleep(row.takes)
					if want := fmt.Sprintf(row.text+" ", calls.Add(1)); !bytes.HasPrefix(resources[0], []byte(want)) {
						disorder.Add(1)
					}
					return a.apply(resources)
				}})
				end := start(t, c)
				time.Sleep(time.Minute)
				if n := calls.Load(); n < row.least || n > row.most || disorder.Load() != 0 {
					t.Errorf("%d updates, %d out of order", n, disorder.Load())
				}
				if waiting := sent.Load() - calls.Load(); waiting > 400 {
					t.Errorf("%d updates wait", waiting)
				}
				if lines := strings.Count(log.String(), "\n"); lines > maxLines+2 {
					t.Errorf("%d lines are logged", lines)
				}
				time.Sleep(time.Hour) // the answers fill the connection
				before := calls.Load()
				time.Sleep(time.Minute)
				if got := c.Status(); got.Accepted+got.Rejected < before-1 || !got.Connected {
					t.Errorf("the status is %+v", got)
				}
				end()
			})
		})
	}
}

// TestNoNonce checks a server without nonces, which takes each answer for a new subscription.
func TestNoNonce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, seen := new(network), new(record)
		n.serve(t, script{play: func(s serverStream) error {
			for {
				r, err := s.Recv()
				if err != nil {
					return err
				}
				seen.add(r)
				if err := s.Send(answer("v", "", "a")); err != nil {
					return err
				}
			}
		}})
		c, a, log := newClient(t, n, Options{})
		defer start(t, c)()
		time.Sleep(10 * time.Second)
		a.expect(t, 1, "a")
		seen.next(t)
		if r := seen.next(t); r.GetVersionInfo() != "v" || r.GetResponseNonce() != "" || r.GetNode() != nil {
			t.Errorf("the answer is %v", r)
		}
		if n := c.Status().Accepted; n < 90 || n > 101 || strings.Count(log.String(), "\n") != 2 {
			t.Errorf("%d updates, and the log %s", n, log)
		}
	})
}

// TestSameResources checks that resources that are in force are accepted and not applied again, whatever
// their version and order, and that a rejection does not change that.
func TestSameResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, seen := new(network), new(record)
		n.serve(t, script{play: func(s serverStream) error {
			for i, r := range []*discovery.DiscoveryResponse{
				answer("1", "n1"), answer("2", "n2"), answer("3", "n3", "a", "b"), answer("4", "n4", "b", "a"), answer("5", "n5", "bad"), answer("6", "n6", "b", "a"),
				answer("7", "n7", "ab"), answer("8", "n8", "a", "b"), answer("9", "n9", "a", "b", ""), answer("10", "n10", "bad"),
			} {
				request, err := s.Recv()
				if err != nil {
					return err
				}
				if i > 0 {
					seen.add(request)
				}
				if err := s.Send(r); err != nil {
					return err
				}
			}
			return keep(s)
		}})
		c, a, log := newClient(t, n, Options{})
		defer start(t, c)()
		time.Sleep(time.Minute)
		a.expect(t, 5, "", "a", "b") // none, a and b, ab, a and b, with an empty one
		for i, version := range []string{"1", "2", "3", "4", "4", "6", "7", "8"} {
			if r := seen.next(t); r.GetVersionInfo() != version || r.GetResponseNonce() != fmt.Sprint("n", i+1) || (r.GetErrorDetail() != nil) != (i == 4) {
				t.Errorf("answer %d is %v", i+1, r)
			}
		}
		if got := c.Status(); got.Version != "9" || got.Accepted != 8 || got.Rejected != 2 || strings.Count(log.String(), "rejected limits") != 2 {
			t.Errorf("the status is %+v, and the log %s", got, log)
		}
	})
}
