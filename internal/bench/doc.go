// Package bench measures Limitgate beside yardsticks that anyone can install,
// and says which of its goals are met.
//
// It starts all servers by itself, on free ports of the loopback interface. A
// case of two sides, Limitgate and its yardstick, runs them in turn (A B A B
// ...) after one warm-up of each, and what is compared is always one round with
// the next: a ratio is the median of the ratios of the rounds. So a machine
// that becomes slower meanwhile slows both, and one bad round of either weighs
// little. What servers cost is read from the scheduler's own account, in
// nanoseconds, and divided by the replies the client counted.
//
// The way of a run: [Run] goes through [Cases]; most are a pair, whose rounds
// give samples, of which figures are made and held against goals; all of it is
// a [Report], that is printed as a table, as JSON, or as a page of the docs.
//
// To add a case, write it in the file of its kind, cases_*.go, and name it in
// Cases.
package bench
