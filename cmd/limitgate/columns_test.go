package main

import "testing"

// TestBlocks: where a row does not fit, its values stand below its title, as many in a line as fit.
func TestBlocks(t *testing.T) {
	got := blocks([][]string{
		{"", "LIMIT", "RATE", "MODE", "LEASE", "WHY", "KEY"},
		{"*", "tenant", "500/s burst 2000", "enforce", "-", "applies to all of its level", "lg:t:{acme} :tenant;t"},
		{"", "größte", "1/s", "", "", "", ""},
		{"", "none", "", "", "", "", ""},
	}, 48)
	const want = `* limit: tenant  rate: 500/s burst 2000
    mode: enforce
    why: applies to all of its level
    key: lg:t:{acme} :tenant;t
  limit: größte  rate: 1/s
  limit: none
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
