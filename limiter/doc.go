// Package limiter makes the decision. Limiter.Decide does so in six steps, which Start,
// Finish and FinishBlocking share: it resolves the limits that apply to each request,
// calls the store, uses the backstop for calls that the store did not decide, refunds the
// units of denied requests, and merges the verdicts so that the strictest wins.
//
// FastPath makes most decisions of a store in this process in one step, one request at a
// time, and refuses the other requests: Decide or Start must decide those.
//
// Every request gets a decision. A store failure shows in the source of the decision and
// is never an error. The unit of work is a batch, because a pipeline is one. A single
// check is a batch of one and allocates nothing.
package limiter
