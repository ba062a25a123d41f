// Package limit holds the words and the maths of rate limiting: what is asked
// (Request), which limits apply to it (Set, Limit, Item), how much each of them
// still has (State and the algorithms), and what was decided (Decision).
//
// The package promises three things. It does no I/O and reads no clock: every
// function that needs the time takes it as an argument, in microseconds since
// the Unix epoch. Its arithmetic is exact: integers only, no rounding that
// could mint or lose a unit, and the same results to the unit as the Lua
// scripts of package cluster. And a compiled Set never changes, so that any
// number of goroutines may resolve requests with it at the same time.
package limit
