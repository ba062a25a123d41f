package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"
)

// outline formats the relevant fields of a node.
func outline(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return fmt.Sprintf("%s %q", n.Tag, n.Value)
	}
	var all []string
	for _, c := range n.Content {
		all = append(all, outline(c))
	}
	return n.Tag + "[" + strings.Join(all, ", ") + "]"
}

// drawJSON draws a value of JSON.
func drawJSON(t *rapid.T, depth int) any {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{"", "a", "<<", "null", "true", "12", "1e3", "~", "é\U0001F600", "a\nb\t\"c\\", "2026-11-21", ": #"}).Draw(t, "text")
	case 1:
		return rapid.Int64().Draw(t, "number")
	case 2:
		return rapid.Bool().Draw(t, "switch")
	case 3:
		return nil
	case 4:
		return []any{drawJSON(t, depth-1), drawJSON(t, depth-1)}
	default:
		return map[string]any{rapid.SampledFrom([]string{"a", "<<", "rate", "true"}).Draw(t, "key"): drawJSON(t, depth-1), "z": drawJSON(t, depth-1)}
	}
}

// TestJSONNode: the node of a part equals the YAML parser's.
func TestJSONNode(t *testing.T) {
	var nodes jsonNodes
	rapid.Check(t, func(t *rapid.T) {
		body, err := json.Marshal(drawJSON(t, 4))
		if err != nil {
			t.Fatal(err)
		}
		got, err := nodes.read(body)
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(body, &doc); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if outline(got) != outline(doc.Content[0]) {
			t.Fatalf("%s is\n%s, not\n%s", body, outline(got), outline(doc.Content[0]))
		}
	})
}

// TestJSONNodeMistakes: invalid JSON and deep nesting are rejected.
func TestJSONNodeMistakes(t *testing.T) {
	for _, body := range []string{``, `{`, `{"a"}`, `{"a":1,}`, `[1 2]`, `{} {}`, `]`, `nul`, strings.Repeat("[", 1_000_000), strings.Repeat("[", 101) + strings.Repeat("]", 101)} {
		if n, err := new(jsonNodes).read([]byte(body)); err == nil {
			t.Errorf("%.40q is read as %s", body, outline(n))
		}
	}
	if n, err := new(jsonNodes).read([]byte(`{"a":1,"a":2}`)); err != nil || len(n.Content) != 4 {
		t.Errorf("a name that is there twice is lost: %v", err)
	}
}
