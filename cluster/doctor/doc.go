// Package doctor examines the Redis of a store for an operator: addresses, rights, settings,
// clocks and speed. It makes the connections and the probes that a Store makes, and changes
// nothing but keys of its own, which it removes.
package doctor
