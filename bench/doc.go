// Package bench measures Limitgate beside yardsticks that anyone can install, and reports
// which of its goals are met.
//
// It starts all servers itself, on free ports of the loopback interface. A case of two
// sides, Limitgate and its yardstick, runs them in turn (A B A B ...) after one warm-up
// of each, and compares each round with the next: a ratio is the median of the ratios of
// the rounds. A machine that becomes slower meanwhile thus slows both, and one bad round
// of either has little weight. The cost of servers is read from the scheduler's own
// account, in nanoseconds, and divided by the replies that the client counted.
//
// The steps of a run: [Run] runs [Cases]; most are a pair, whose rounds give samples,
// from which figures are made and compared with goals; all of it is a [Report], which is
// printed as a table, as JSON, or as tables of the docs.
//
// To add a case, write it in the file of its kind, cases_*.go, and add it to Cases.
package bench
