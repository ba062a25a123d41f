//go:build !limitgate_previous_format

package cluster

// writeFormat is the format in which buckets are written, see scripts/bucket.lua. This build
// also reads those of the format before, which the build in format_previous.go writes. That
// in turn updates those of this format: it stands for the release before this one, so that
// a fleet can be upgraded one proxy at a time.
const writeFormat = 3
