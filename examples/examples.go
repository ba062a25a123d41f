// Package examples holds the sample limits file that serve uses when it is
// given none, so that what is shown is what runs.
package examples

import _ "embed"

// Limits is the content of limits.yaml.
//
//go:embed limits.yaml
var Limits []byte
