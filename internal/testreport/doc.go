// Testreport runs go test for people. It prints a line for each package when its tests
// are over, and the output of failed tests only. A skipped test is a failure, unless its
// package left it out because the machine lacks a dependency.
//
//	testreport run RESULTS PART GO TEST ARGUMENTS...
//	testreport close RESULTS
//
// Run keeps the whole output in RESULTS/PART.log and the result in RESULTS/PART.json.
// Close prints the tests that all parts left out, the failed tests with the commands that
// run them again, and the counts. Both exit with 1 when a test failed.
//
// With LIMITGATE_ALL=1 a test that was left out is a failure.
package main
