//go:build !limitgate_next_format

package cluster

// writeFormat is the format in which this release writes new buckets. It also reads and
// updates buckets in the next format, so that a fleet can be upgraded one proxy at a time.
const writeFormat = 1
