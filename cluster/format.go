//go:build !limitgate_next_format

package cluster

// writeFormat is the format in which this release writes new buckets. It reads
// and continues the next one, so that a fleet can be upgraded one by one.
const writeFormat = 1
