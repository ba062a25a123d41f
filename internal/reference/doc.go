// Package reference decides requests by a limits file, as docs/limits.md describes it.
// Tests compare the other implementations with it.
//
// The package is a specification: it favours text close to the documentation over speed.
// Contents are exact rationals, waits are found by search, and its memory is not bounded.
// It imports no other package of this module, so a mistake in their arithmetic cannot be
// repeated here.
//
// Leases and the local stores are decided as if their limits were shared exactly. A
// comment that begins with "Not documented:" marks an interpretation that the documents
// leave open.
package reference
