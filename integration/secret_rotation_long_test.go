//go:build long

package integration

import (
	"fmt"
	"testing"
)

// longRotations is the number of rotations, which take some 45 seconds.
const longRotations = 3

// TestLongSecretRotation is TestSecretRotation with one rotation after the other.
func TestLongSecretRotation(t *testing.T) {
	r := newRotation(t)
	p := r.serve(t)
	load := startPaced(p, rotationRate)
	load.disturb(func() { r.cut(t, p) })
	for i := range longRotations {
		r.rotate(t, p, load, fmt.Sprint("staple-of-another-kind-", i))
		// A refused password makes a proxy read the secret once in ten seconds.
		load.awaitMore(t, 10*rotationRate)
	}
	r.report(t, load)
}
