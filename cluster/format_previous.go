//go:build limitgate_previous_format

package cluster

// writeFormat is the format of the release before this one. This build exists to test that
// the two releases can share a store.
const writeFormat = 1
