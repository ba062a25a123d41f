package config

import "strings"

// LimitsTablePrefix begins what Settings.Limits says of a table, instead of a path.
const LimitsTablePrefix = "dynamodb://"

// LimitsTable returns the name of the table that the limits are in, or "".
func (s *Settings) LimitsTable() string {
	name, _ := strings.CutPrefix(s.Limits, LimitsTablePrefix)
	if name == s.Limits {
		return ""
	}
	return name
}
