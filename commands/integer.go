package commands

import "strconv"

// Redis' errors for arguments of many commands.
const (
	syntaxError  = "ERR syntax error"
	notAnInteger = "ERR value is not an integer or out of range"
)

// parseInteger parses a number as Redis does: digits, a minus if it is negative, no plus
// and no leading zeros.
func parseInteger(arg []byte) (int64, bool) {
	digits := arg
	if len(digits) > 1 && digits[0] == '-' {
		digits = digits[1:]
		if digits[0] == '0' {
			return 0, false
		}
	}
	if len(digits) == 0 || digits[0] < '0' || digits[0] > '9' || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(arg), 10, 64)
	return n, err == nil
}
