package rlsxds

import (
	"bytes"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

func encode(t testing.TB, m proto.Message) []byte {
	t.Helper()
	text, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestResponseMemory checks that a message of empty resources takes little more than its own length.
func TestResponseMemory(t *testing.T) {
	message := []byte(strings.Repeat("\x12\x00", DefaultMaxMessage/2))
	r := new(response)
	if err := r.parse(message); err != nil || !r.tooMany || cap(r.resources) > 2*maxResources {
		t.Errorf("%d resources of %d, too many: %v, %v", len(r.resources), cap(r.resources), r.tooMany, err)
	}
	r = new(response)
	if err := r.parse(message[:2*maxResources]); err != nil || r.tooMany || len(r.resources) != maxResources {
		t.Errorf("%d resources, too many: %v, %v", len(r.resources), r.tooMany, err)
	}
}

// FuzzResponse compares the parser with that of the protocol's own library.
func FuzzResponse(f *testing.F) {
	whole := answer("v", "n", "a", "", "b")
	whole.Canary, whole.ControlPlane = true, &core.ControlPlane{Identifier: "i"}
	for _, seed := range [][]byte{
		encode(f, whole), encode(f, otherType("x")), append(encode(f, whole), encode(f, answer("w", "m", "c"))...),
		[]byte("\x0b\x0a\x01v\x0c\x12\x00"), []byte("\x0a\x05v"), []byte("\x12\x02\x0a\x05"), []byte("\x08\x01\x12\x02\x08\x01\x12\x02\x12\x00"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		r, want := new(response), new(discovery.DiscoveryResponse)
		err := r.parse(message)
		if proto.Unmarshal(message, want) != nil {
			return // a part that the parser leaves out may be malformed
		}
		if len(want.GetVersionInfo()) > maxWord || len(want.GetNonce()) > maxWord {
			if err == nil {
				t.Error("a long word is accepted")
			}
			return
		}
		if err != nil || r.version != want.GetVersionInfo() || r.nonce != want.GetNonce() || string(r.kind) != want.GetTypeUrl() {
			t.Fatalf("%+v, %v, want %v", r, err, want)
		}
		if r.tooMany != (len(want.GetResources()) > maxResources) || !r.tooMany && len(r.resources) != len(want.GetResources()) {
			t.Fatalf("%d resources, want %d", len(r.resources), len(want.GetResources()))
		}
		for i, one := range r.resources {
			if with := want.GetResources()[i]; string(one.kind) != with.GetTypeUrl() || !bytes.Equal(one.value, with.GetValue()) || cap(one.value) != len(one.value) {
				t.Errorf("resource %d is %q, want %v", i, one, with)
			}
		}
		_, _ = r.values() // does not panic
	})
}
