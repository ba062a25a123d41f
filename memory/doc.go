// Package memory is the store in this process: the default without Redis, and the engine
// under the backstop. It decides exactly as the scripts of package cluster do, with the
// same maths from package limit.
//
// Its memory is bounded: it keeps at most Options.Buckets buckets. Full and expired
// buckets make room first. If all buckets are live, one common overflow bucket per limit
// decides for new buckets, so that a flood of new names clears no bucket's debt. The
// package starts no goroutine and reads no clock: its time is that of the decision.
package memory
