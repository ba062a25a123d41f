// Package limit is the model and the maths of rate limiting: the request (Request), the
// limits that apply to it (Set, Limit, Item), the content of their buckets (State and the
// algorithms), and the answer (Decision).
//
// The package does no I/O and reads no clock: every function that needs the time takes it
// as an argument, in microseconds since the Unix epoch. Its arithmetic is exact: it uses
// integers only, no rounding creates or loses a unit, and the results equal those of the
// Lua scripts of package cluster to the unit. A compiled Set never changes, so that any
// number of goroutines may resolve requests with it at the same time.
package limit
