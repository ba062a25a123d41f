package envoy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"

	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3" // a typed_config
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3" // a typed_config
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"    // a typed_config
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"  // a typed_config
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"         // a typed_config
)

// documents returns the documents of a file.
func documents(t *testing.T, path string) []*yaml.Node {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var n yaml.Node
		if err := decoder.Decode(&n); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, &n)
	}
}

// strict decodes a document into a struct that has all of its fields.
func strict(t *testing.T, n *yaml.Node, to any) {
	t.Helper()
	content, err := yaml.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(to); err != nil {
		t.Errorf("%v in\n%s", err, content)
	}
}

// message decodes YAML into a message of Envoy, of which every field is known, and resolves the
// typed_config of all extensions.
func message(t *testing.T, value any, to proto.Message) {
	t.Helper()
	if n, ok := value.(*yaml.Node); ok {
		var decoded any
		if err := n.Decode(&decoded); err != nil {
			t.Fatal(err)
		}
		value = decoded
	}
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(content, to); err != nil {
		t.Fatalf("%v in\n%s", err, content)
	}
}

// valid checks the constraints of a message, and those of the messages in it that have a type of
// their own, which the message does not check.
func valid(t *testing.T, m proto.Message) {
	t.Helper()
	extensions := 0
	check := func(m proto.Message) {
		v, ok := m.(interface{ ValidateAll() error })
		if !ok {
			t.Errorf("%T has no constraints", m)
		} else if err := v.ValidateAll(); err != nil {
			t.Error(err)
		}
	}
	check(m)
	err := protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
		if last := p.Index(-1); last.Step.Kind() == protopath.AnyExpandStep {
			extensions++
			check(last.Value.Message().Interface())
		}
		return nil
	})
	if err != nil || extensions == 0 {
		t.Errorf("%T has %d extensions: %v", m, extensions, err)
	}
}
