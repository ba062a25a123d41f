// Testreport runs go test for people. It prints a line for each package when its tests are
// over, and of tests nothing but the output of those that failed. A skipped test is a
// failure, unless its package left it out for want of something that the machine may lack.
//
//	testreport run RESULTS PART GO TEST ARGUMENTS...
//	testreport close RESULTS
//
// Run keeps the whole output in RESULTS/PART.log and the result in RESULTS/PART.json. Close
// prints what all parts left out, the tests that failed with the commands that run them
// again, and the counts. Both exit with 1 when a test failed.
//
// With LIMITGATE_ALL=1 a test that was left out is a failure.
package main
