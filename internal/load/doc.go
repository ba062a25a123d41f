// Package load makes load: one thread that keeps many connections busy by epoll, sends
// prebuilt requests, and checks every reply.
//
// It is light, so that the server is measured and not the generator: a request costs it a
// copy of some bytes, a reply one pass over its bytes and a count in a histogram. It
// checks everything: a reply of another shape ends the run, error replies are counted and
// the first is recorded, decisions are counted by verdict and source.
//
// A closed load ([Load.Rate] is 0) sends the next pipeline of a connection when the last
// one is answered, and measures from the time of sending. An open load sends at fixed
// times independently of the server, and measures from the time at which a request was
// due: the wait for a stalled server is fully counted (no coordinated omission).
package load
