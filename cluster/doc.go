// Package cluster is the store on a Redis Cluster or a single Redis. All buckets of a
// tenant share one hash slot and are decided by one atomic script call. Buckets that span
// tenants have hash slots of their own and are decided concurrently.
//
// The store sends calls only to masters (ROLE is checked on every new connection). It never
// repeats a call that may have been executed. A call that is not decided before its
// deadline stays undecided: a failure is not returned as an error but counted, and left to
// the backstop.
package cluster
