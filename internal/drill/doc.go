// Package drill practises the outages that operators of a limitgate should know. It has a table of
// them, as steps for people, and a runner that makes some of them on a store that is for tests.
package drill
