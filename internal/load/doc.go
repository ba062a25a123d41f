// Package load makes load: one thread that keeps many connections busy by
// epoll, sends requests that were built beforehand, and looks at every reply.
//
// It is light, so that what is measured is the server: a request costs it a
// copy of some bytes, a reply one pass over its bytes and a count in a
// histogram. It trusts nothing: a reply of another shape ends the run, error
// replies are counted and the first is kept, decisions are counted by verdict
// and source.
//
// A closed load ([Load.Rate] is 0) sends the next pipeline of a connection when
// the last one is answered, and measures from the moment it sends. An open load
// sends at fixed instants whatever the server does, and measures from the
// instant at which a request was due: what waits for a stalled server counts as
// the wait it is (no coordinated omission).
package load
