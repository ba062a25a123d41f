// Package limiter makes the decision. Limiter.Decide can be read from top to
// bottom: it resolves which limits apply to each request, asks the store, lets
// the backstop answer what the store could not, gives back what a denial must
// not keep, and merges the verdicts so that the strictest wins.
//
// It promises that every request gets a decision: trouble with the store is a
// decision whose source says so, never an error. The unit of work is a batch,
// because a pipeline is one; a single check is a batch of one and allocates
// nothing.
package limiter
