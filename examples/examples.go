// Package examples holds the sample limits file that serve uses without --limits, so that
// the documented file is the one that runs.
package examples

import _ "embed"

// Limits is the content of limits.yaml.
//
//go:embed limits.yaml
var Limits []byte
