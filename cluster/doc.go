// Package cluster is the store on a Redis Cluster or a single Redis. All
// buckets of a tenant share one slot and are decided by one atomic script
// call; buckets that span tenants have slots of their own and are decided at
// the same time.
//
// It promises to talk to masters only (ROLE is asked on every new connection),
// never to send a call again that may have been executed, and to leave what it
// could not decide before the deadline undecided: trouble is not an error
// here, it is counted and left to the backstop.
package cluster
