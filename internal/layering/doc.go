// Package layering holds the tests of the house's own order: which package may
// import which, who may read files, flags and the environment, that every
// package says once what it is, and that no test is skipped.
//
// It has no code to import. A new package needs a row in the table of
// layering_test.go.
package layering
