// Package linear checks whether the decisions about a tenant's buckets are linearizable:
// whether there is an order of whole decisions, each made at one instant between its call
// and its reply, that explains every reply of the store.
//
// A History is the calls and replies of the clients of one tenant. Its model is written
// from the documentation of limits, and shares no code with the stores. Porcupine
// searches for the order; if there is none, Explain names the reply that cannot be
// explained, and the smallest part of the history that shows it.
package linear
