// Package limit is the model of rate limiting: the request (Request), the limits that apply
// to it (Set, Limit), their buckets (Item), and the answer (Decision). The maths is in package
// bucket.
//
// The package does no I/O and reads no clock: every function that needs the time takes it
// as an argument, in microseconds since the Unix epoch. A compiled Set never changes, so that
// any number of goroutines may resolve requests with it at the same time.
package limit
