// Package judge holds every store to the same decisions. Random limits files and random
// histories of requests, settlements and reloads run on the limiter with the memory store,
// with one Redis and with a cluster of three masters, all on one clock that the histories
// step. Each answer is compared with that of package reference, which is written from the
// documentation alone. A history that is answered differently is made as small as
// possible; those in testdata are run again by each test run.
package judge
