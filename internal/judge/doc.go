// Package judge compares the decisions of all stores. Random limits files and random
// histories of requests, settlements and reloads run on the limiter with the memory
// store, with one Redis and with a cluster of three masters, all on one clock that the
// histories advance. Each answer is compared with that of package reference, which is
// written from the documentation alone. A history with a different answer is made as
// small as possible; those in testdata run again in each test run.
package judge
