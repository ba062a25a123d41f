package config

import "strings"

// LimitsTablePrefix is the prefix of Settings.Limits for a table instead of a path.
const LimitsTablePrefix = "dynamodb://"

// NoTableName is the mistake of a table without a name.
const NoTableName = Mistake("the name of the table is missing: write " + LimitsTablePrefix + "TABLE")

// LimitsTable returns the name of the table of limits, or "".
func (s *Settings) LimitsTable() string {
	name, _ := strings.CutPrefix(s.Limits, LimitsTablePrefix)
	if name == s.Limits {
		return ""
	}
	return name
}
