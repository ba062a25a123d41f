package envoy

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/limitgate/limitgate/limit"
)

// TestCodec checks that requests with too many parts are refused before they are read, and that others are
// the same as without the check.
func TestCodec(t *testing.T) {
	entries := protowire.AppendTag(nil, 2, protowire.BytesType)
	entries = protowire.AppendBytes(entries, bytes.Repeat([]byte{0x0a, 0}, maxEntries+1))
	for name, message := range map[string][]byte{"descriptors": bytes.Repeat([]byte{0x12, 0}, limit.MaxDescriptors+1), "entries": entries} {
		if req, err := new(parser).parse(message); !errors.Is(err, errManyInOne) || len(req.GetDescriptors()) > 0 {
			t.Errorf("%s: %d descriptors, %v", name, len(req.GetDescriptors()), err)
		}
	}
	want := &rls.RateLimitRequest{Domain: "mesh", HitsAddend: 7, Descriptors: []*ratelimit.RateLimitDescriptor{descriptor(t, "a=1 b=2 hits=3"), descriptor(t, "c=4 limit=5/6*7")}}
	message, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := new(parser).parse(message); err != nil || !proto.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// TestManyAtOnce checks the bounds of requests that are decided at once, and of clients that are gone.
func TestManyAtOnce(t *testing.T) {
	s := newNative(t, Behaviour{})
	req := &rls.RateLimitRequest{Domain: "mesh", Descriptors: slices.Repeat([]*ratelimit.RateLimitDescriptor{descriptor(t, "tenant=a")}, maxNative+1)}
	if _, err := s.ShouldRateLimit(t.Context(), req); !errors.Is(err, errManyNative) {
		t.Errorf("a native request with too many descriptors: %v", err)
	}
	req.Descriptors = req.GetDescriptors()[:2]
	s.inProgress.Store(maxInProgress - 1)
	if _, err := s.ShouldRateLimit(t.Context(), req); !errors.Is(err, errBusy) {
		t.Errorf("beside too many others: %v", err)
	}
	s.inProgress.Store(maxInProgress - 2)
	if _, err := s.ShouldRateLimit(t.Context(), req); err != nil || s.inProgress.Load() != maxInProgress-2 {
		t.Errorf("in the last room: %v, and then %d in progress", err, s.inProgress.Load())
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ShouldRateLimit(gone, req); status.Code(err) != codes.Canceled {
		t.Errorf("of a client that is gone: %v", err)
	}
}

// FuzzParse compares the parser with the one of protobuf, and a second message with the memory of the first.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"a=1 b=2,c=3", "a=1 hits=3", "c=4 limit=5/6*7", ""} {
		message, err := proto.Marshal(request(f, "mesh", text, 7))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message, []byte{0x12, 2, 0x0a, 0, 0x0a, 1, 0xff})
	}
	f.Add([]byte{0x12, 0x80}, []byte{0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x12, 4, 0x0a, 2, 0x18, 1})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var p parser
		for _, message := range [][]byte{first, second} {
			var want rls.RateLimitRequest
			plain := proto.Unmarshal(message, &want)
			n := 0
			for _, d := range want.GetDescriptors() {
				n += len(d.GetEntries())
			}
			got, err := p.parse(message)
			switch fits := len(want.GetDescriptors()) <= limit.MaxDescriptors && n <= maxEntries; {
			case errors.Is(err, errManyInOne):
			case plain == nil && fits && err != nil, plain != nil && err == nil:
				t.Errorf("%x: %v, and protobuf %v", message, err, plain)
			case err == nil && !proto.Equal(got, &want):
				t.Errorf("%x: %v, want %v", message, got, &want)
			}
			p.reset()
		}
	})
}
