// Package cloudformation holds the tests of limits.yaml, the CloudFormation template beside
// it: that its policies allow what the code calls and nothing else, that what has to be kept
// is kept, and that an emulator makes a stack of it on which the code works.
//
// It has no code to import.
package cloudformation
