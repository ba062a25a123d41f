package accesslog

import "regexp"

const (
	// syslogTime matches a time of RFC 3339, which rsyslog writes in headers of RFC 3164 too.
	syslogTime = `\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d)`
	// oldHeader matches the header of https://www.rfc-editor.org/rfc/rfc3164#section-4.1: the priority, which files lack,
	// the time, the host, which nginx leaves out on request, and the program.
	oldHeader = `(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|` + syslogTime + `) (?:\S+ )?[\w./-]{1,48}(?:\[\d{1,10}\])?: `
	// newHeader matches that of https://www.rfc-editor.org/rfc/rfc5424#section-6: the priority and the version, the time,
	// the host, the program, the process and the kind of message, and data in brackets or a -.
	newHeader = `<\d{1,3}>1 (?:-|` + syslogTime + `) \S+ \S+ \S+ \S+ (?:-|(?:\[(?:[^\]\\]|\\.)+\])+) \x{FEFF}?`
)

// syslogHeader matches what syslog writes before a line.
var syslogHeader = regexp.MustCompile(`^(?:` + oldHeader + `|` + newHeader + `)`)

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
