package commands

import "testing"

// TestDialectNames: each dialect that a command of its own selects has a name. An empty one
// would make a decision of a command without a name.
func TestDialectNames(t *testing.T) {
	for f, name := range dialectNames {
		if name == "" {
			t.Errorf("dialect %d has no name", f)
		}
	}
	if len(dialectNames) != int(dialectHeaders) {
		t.Errorf("%d names, but dialectHeaders, which an option selects, is number %d", len(dialectNames), dialectHeaders)
	}
}
