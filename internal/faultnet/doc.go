// Package faultnet puts a bad network between a client and a server: a [Link]
// forwards connections, and can hold replies back, reset connections or deliver
// nothing at all, for tests of what then happens at both ends.
//
// It does three things and has to do them to connections that are open already.
// The proxies there are to buy do more, are started as servers of their own, and
// reset a connection after a time and not now and then.
package faultnet
