package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Parse parses one line of a log in Common or Combined Log Format:
//
//	HOST IDENT USER [17/May/2015:10:05:03 +0000] "METHOD TARGET PROTO" STATUS BYTES
//	HOST IDENT USER [17/May/2015:10:05:03 +0000] "METHOD TARGET PROTO" STATUS BYTES "REFERER" "USER-AGENT"
//
// A line ending and trailing blanks are ignored, and so is whatever follows a
// user agent after a space, since many servers are set up to append fields
// there. In USER and in quoted fields the escapes of Apache httpd and nginx are
// decoded: \", \\, \b, \f, \n, \r, \t, \v and \xHH; any other backslash stands
// for itself. A bare "-" for USER, REFERER or USER-AGENT is the empty string.
//
// Parse copies what it keeps of line. An error is one sentence with the mistake and its
// correction, at most 400 bytes, without control characters. Parse does not limit the
// length of a line, [Reader.Next] does. It may be called concurrently.
func Parse(line []byte) (Entry, error) {
	// The one allocation of a line without escapes: fields are substrings.
	s := string(bytes.TrimRight(line, " \t\r\n"))
	if s == "" {
		return Entry{}, errors.New("the line is empty")
	}
	e, err := parse(s)
	if err != nil && errorLog.MatchString(s) {
		err = errors.New("it is a line of an error log: name the access log")
	}
	return e, err
}

// parse parses one line, without blanks behind it.
func parse(s string) (e Entry, err error) {
	rest, err := e.parseClient(s)
	if err != nil {
		return Entry{}, err
	}
	rest, err = e.parseTime(rest)
	if err != nil {
		return Entry{}, err
	}
	rest, err = e.parseRequest(rest)
	if err != nil {
		return Entry{}, err
	}
	rest, err = e.parseResponse(rest)
	if err != nil {
		return Entry{}, err
	}
	if err := e.parseHeaders(rest); err != nil {
		return Entry{}, err
	}
	return e, nil
}

// errorLog matches the beginning of a line of an error log of nginx, and of Apache httpd.
var errorLog = regexp.MustCompile(`^(?:\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[[a-z]+\] |\[[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d [\d:.]+ \d{4}\] \[)`)

// parseClient takes HOST IDENT USER and the space after them off s.
func (e *Entry) parseClient(s string) (rest string, err error) {
	host, rest, ok := cutHost(s)
	if !ok || host == "" {
		return "", errors.New("the line does not begin with a host and a space: want Common or Combined Log Format, HOST IDENT USER [TIME] \"REQUEST\" STATUS BYTES")
	}
	ident, rest, ok := strings.Cut(rest, " ")
	if !ok || strings.HasPrefix(ident, "[") || strings.HasPrefix(rest, "[") {
		return "", errors.New("there are fewer than three fields before the [time]: want HOST IDENT USER, with \"-\" for an unknown one")
	}
	// A user name may contain spaces, which no server escapes, so it ends
	// where the time begins.
	i := strings.Index(rest, " [")
	if i < 0 {
		return "", errors.New("there is no time in brackets after HOST IDENT USER: want for example [17/May/2015:10:05:03 +0000]")
	}
	user := rest[:i]
	if looksLikeVhost(ident, user) {
		return "", errors.New("the line begins with a virtual host, before the client's address: want Common or Combined Log Format without it (cut -d' ' -f2- removes it)")
	}
	if begin := addressBehind(host, ident, user); begin != "" {
		return "", fmt.Errorf("the address of the client stands behind %s: remove what is in front of it (docker compose logs --no-log-prefix, or cut)", quote(begin))
	}
	e.RemoteAddr = host
	// Apache writes "" for a user who logged in with an empty name.
	if user != "-" && user != `""` {
		e.User = unescape(user)
	}
	return rest[i+1:], nil
}

// addressBehind returns what stands in front of ADDRESS IDENT USER, the last words in front of the time, if that is more than one word,
// as the prefix of docker compose, or "".
func addressBehind(host, ident, user string) string {
	if !strings.Contains(user, " ") { // without the memory of words
		return ""
	}
	words := strings.Fields(ident + " " + user)
	if len(words) < 4 {
		return ""
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	if _, err := netip.ParseAddr(words[len(words)-3]); err != nil {
		return ""
	}
	return strings.Join(append([]string{host}, words[:len(words)-3]...), " ")
}

// looksLikeVhost recognizes Apache's vhost_combined format, where every field is one
// place too far to the right. Unnoticed, all requests would seem to come from the same
// client, the server.
func looksLikeVhost(ident, user string) bool {
	if !strings.Contains(user, " ") {
		return false
	}
	_, err := netip.ParseAddr(ident)
	return err == nil
}

// parseTime takes [TIME] and the space after it off s, which begins with "[".
func (e *Entry) parseTime(s string) (rest string, err error) {
	stamp, rest, ok := strings.Cut(s[1:], "] ")
	if !ok {
		return "", errors.New("the [time] is not closed by a bracket and a space: want for example [17/May/2015:10:05:03 +0000]")
	}
	e.Time, err = parseTimestamp(stamp)
	return rest, err
}

// parseResponse takes the space before STATUS, STATUS and BYTES off s, and the
// space after BYTES if there is one.
func (e *Entry) parseResponse(s string) (rest string, err error) {
	if s == "" {
		return "", errors.New("the line ends after the request: want the status and the number of bytes")
	}
	if s[0] != ' ' {
		return "", fmt.Errorf("the request is followed by %s: want a space and the status (a quote inside the request is written \\\")", quote(s))
	}
	status, rest, _ := strings.Cut(s[1:], " ")
	if len(status) != 3 || !allDigits(status) {
		return "", fmt.Errorf("the status is %s: want three digits", quote(status))
	}
	e.Status = int64(status[0]-'0')*100 + int64(status[1]-'0')*10 + int64(status[2]-'0')

	size, rest, _ := strings.Cut(rest, " ")
	if size == "-" {
		return rest, nil
	}
	if !allDigits(size) {
		return "", fmt.Errorf("the number of bytes is %s: want digits or \"-\"", quote(size))
	}
	e.Bytes, err = strconv.ParseInt(size, 10, 64)
	if err != nil {
		return "", fmt.Errorf("the number of bytes is %s: want at most 9223372036854775807", quote(size))
	}
	return rest, nil
}

// parseHeaders parses what follows BYTES: nothing in Common Log Format,
// "REFERER" "USER-AGENT" in Combined.
func (e *Entry) parseHeaders(s string) error {
	if s == "" {
		return nil
	}
	referer, rest, err := cutQuoted(s, "referer")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(rest, " ") {
		return errors.New("the referer is not followed by a space and a user agent: want both in quotes (a quote inside is written \\\"), or neither")
	}
	agent, rest, err := cutQuoted(rest[1:], "user agent")
	if err != nil {
		return err
	}
	if rest != "" && rest[0] != ' ' {
		return fmt.Errorf("the user agent is followed by %s: want the end of the line or a space (a quote inside the user agent is written \\\")", quote(rest))
	}
	e.Referer, e.UserAgent = headerValue(referer), headerValue(agent)
	return nil
}

// headerValue decodes a header as logged. Only a bare "-" means that there was
// none, "\x2d" is a dash.
func headerValue(s string) string {
	if s == "-" {
		return ""
	}
	return unescape(s)
}

// allDigits reports whether s is one or more ASCII digits.
func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
