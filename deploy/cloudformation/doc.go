// Package cloudformation holds the tests of the CloudFormation templates beside it,
// limits.yaml and control-plane.yaml: that their policies allow what the code calls and
// nothing else, that what has to be kept is kept, that functions and alarms are of what the
// code does, and that an emulator makes stacks of them on which the code works.
//
// It has no code to import.
package cloudformation
