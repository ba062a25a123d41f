//go:build limitgate_next_format

package cluster

// writeFormat of the next release: this build exists to test that the two can
// share a store.
const writeFormat = 2
