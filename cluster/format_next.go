//go:build limitgate_next_format

package cluster

// writeFormat is the format of the next release. This build exists to test that the two
// releases can share a store.
const writeFormat = 2
