// Package cloudformation holds the tests of the CloudFormation templates beside it,
// of which limits.yaml, control-plane.yaml and store.yaml have resources. They check that the policies allow the calls of the
// code and nothing else, that retained resources are retained, that functions and alarms
// match the code, and that an emulator creates stacks of them on which the code works.
//
// It has no code to import.
package cloudformation
