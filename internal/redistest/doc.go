// Package redistest starts real redis-server processes for tests: one server, a
// replicated pair or a whole cluster, bound to the loopback interface. They end with the
// test.
//
// The binaries come from the folder in LIMITGATE_REDIS_BIN, or from PATH. A
// test that cannot find them fails; it is never skipped.
//
// Starting a cluster takes about two seconds, so tests that do not change it share one
// per test binary:
//
//	func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		cluster := redistest.SharedCluster(t)
//		...
//	}
//
// A test that kills, stops or reconfigures servers starts its own with
// [StartCluster] or [Start].
package redistest
