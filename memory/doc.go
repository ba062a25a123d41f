// Package memory is the store in this process: the embedded default, and the
// engine under the backstop. It decides exactly as the scripts of package
// cluster do, with the same maths from package limit.
//
// It promises bounded memory: at most Options.Buckets buckets are kept. Full
// and expired ones make room first; when all are live, new buckets are decided
// by one common overflow bucket per limit, so that a flood of new names
// forgives nobody's debt. It starts no goroutine and reads no clock:
// its time is that of the decision.
package memory
