package accesslog

import "regexp"

// syslogHeader matches what syslog writes before a line, https://www.rfc-editor.org/rfc/rfc3164#section-4.1: the time, which rsyslog writes as RFC 3339
// too, the host and the program.
var syslogHeader = regexp.MustCompile(`^(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.]{8,15}(?:Z|[+-]\d\d:\d\d)) \S{1,255} [\w./-]{1,48}(?:\[\d{1,10}\])?: `)

// withoutSyslog returns a line without the header of syslog, if it has one.
func withoutSyslog(line []byte) []byte {
	const longestYear = len("2026-03-01")
	mayHave := line[0] == '<' || line[0] >= 'A' && line[0] <= 'Z' || len(line) > longestYear && line[longestYear] == 'T'
	if !mayHave {
		return line
	}
	if end := syslogHeader.FindIndex(line); end != nil && end[1] < len(line) {
		return line[end[1]:]
	}
	return line
}
