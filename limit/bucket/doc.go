// Package bucket is the maths of rate limiting: the state of one bucket (State, UnitLog),
// the numbers of its limit (Params), and the decision about a number of units (Decide).
//
// Every function is pure: the time is an argument, in microseconds since the Unix epoch. The
// arithmetic is exact: it uses integers only, no rounding creates or loses a unit, and the
// results equal those of the Lua scripts of package cluster to the unit.
package bucket
