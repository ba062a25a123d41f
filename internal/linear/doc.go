// Package linear checks whether the decisions about a tenant's buckets are
// linearizable: whether there is an order of whole decisions, each made at one instant
// between its call and its reply, that explains every reply of the store.
//
// A History is what the clients of one tenant saw. Its model is written from the
// documentation of limits, and shares no code with the stores. Porcupine searches the
// order; where there is none, Explain names the reply that cannot be explained, and the
// smallest part of the history that shows it.
package linear
