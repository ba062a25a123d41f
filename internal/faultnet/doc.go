// Package faultnet puts a bad network between a client and a server: a [Link] forwards
// connections, and can hold replies back, reset connections or deliver nothing at all,
// for tests of both ends.
//
// These faults apply to open connections too. Existing proxies do more, run as separate
// servers, and reset a connection after a time instead of at random.
package faultnet
