package limitimport

import (
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"
)

// TestQuoted: YAML reads a quoted text as it was.
func TestQuoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a\u0085\u2028\ufeff\ufffe\x7f\x00\"\\\n\U000e0001é😀")))).Draw(t, "text")
		var got string
		if err := yaml.Unmarshal([]byte(quoted(want)), &got); err != nil || got != want {
			t.Fatalf("%q is %q: %v", want, got, err)
		}
	})
}
