// Package layering tests the layout of the modules: which package may import which, which
// packages may read files, flags and the environment, that every package has one package
// comment, that modules agree on versions, and that no test is skipped.
//
// It has no code to import. A new package needs a row in the table of
// layering_test.go.
package layering
