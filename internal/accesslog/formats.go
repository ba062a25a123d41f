package accesslog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// parseLine parses a line of any format that a Reader reads. The beginning of the line tells
// which. It returns ok = false for a line that is no request, such as a heading.
func (r *Reader) parseLine(line []byte) (e Entry, ok bool, err error) {
	line = withoutSyslog(line)
	format := ""
	switch {
	case line[0] == '{':
		format = "JSON"
		e, err = parseJSON(line)
	case line[0] == '[' && isEnvoy(line):
		format = "Envoy's default format"
		e, err = parseEnvoy(string(line))
	case isJSONArray(line):
		err = errors.New("a JSON array begins, and its objects are not read: want one object a line without brackets around all (jq -c '.[]' makes that of an array)")
	case line[0] == '#':
		return e, false, r.heading(string(line))
	case r.columns != nil:
		e, err = r.parseColumns(string(line))
	case isCloudFront(line):
		err = errors.New("these are columns of CloudFront, and no line #Fields: before them names them: want the log with its first two lines, of which #Fields: is one")
	case isIIS(line):
		err = errors.New("these are columns of IIS, and no line #Fields: before them names them: want the log from its line #Fields: on")
	case isALB(line):
		format = "an Application Load Balancer"
		e, err = parseALB(string(line))
	default:
		if e, err = Parse(line); err == nil {
			r.common = true
		} else if r.format != "" && !r.common {
			err = fmt.Errorf("it is no line of %s, as those before it are", r.format)
		}
	}
	if err == nil {
		r.format = format
	}
	return e, err == nil, err
}

// isEnvoy reports whether a line that begins with a bracket is one of Envoy: a year follows, and
// not an IPv6 address.
func isEnvoy(line []byte) bool {
	return len(line) > 5 && allDigits(string(line[1:5])) && line[5] == '-'
}

// isJSONArray reports whether a line begins an array of objects.
func isJSONArray(line []byte) bool {
	rest := bytes.TrimLeft(line[1:], " ")
	return line[0] == '[' && (len(rest) == 0 || rest[0] == '{')
}

// isCloudFront reports whether a line begins as those of CloudFront do: a date, a time, and tabs behind them.
func isCloudFront(line []byte) bool {
	const date, stamp = len("2026-03-01"), len("2026-03-01\t10:00:05")
	return len(line) > stamp && line[4] == '-' && line[date] == '\t' && line[date+3] == ':' && line[stamp] == '\t'
}

// isIIS reports whether a line is as those of IIS are: a date, a time, and behind blanks a method and a path. Many
// programs begin a line with a date.
func isIIS(line []byte) bool {
	const date, stamp = len("2026-03-01"), len("2026-03-01 10:00:05")
	if len(line) <= stamp || line[4] != '-' || line[date] != ' ' || line[date+3] != ':' || line[date+6] != ':' || line[stamp] != ' ' {
		return false
	}
	words := strings.Fields(string(line[stamp:]))
	at := slices.IndexFunc(words, limit.IsMethod)
	return at >= 0 && at+1 < len(words) && words[at+1][0] == '/'
}

// parseEnvoy parses a line in Envoy's default format,
// https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage:
//
//	[TIME] "METHOD PATH PROTO" STATUS FLAGS RECEIVED SENT DURATION UPSTREAM "X-FORWARDED-FOR" "USER-AGENT" "ID" "AUTHORITY" "HOST"
//
// The address is the client of X-Forwarded-For, as of a list in the other formats.
func parseEnvoy(s string) (e Entry, err error) {
	stamp, rest, ok := strings.Cut(s[1:], "] ")
	if !ok {
		return e, errors.New("the [time] is not closed by a bracket and a space: want Envoy's default format, which begins with [2026-03-01T10:00:00.000Z]")
	}
	if e.Time, err = timeRFC3339(stamp); err != nil {
		return e, err
	}
	if rest, err = e.parseRequest(rest); err != nil {
		return e, err
	}
	fields, quoted, ok := strings.Cut(strings.TrimPrefix(rest, " "), ` "`)
	words := strings.Fields(fields)
	if !ok || len(words) < 4 {
		return e, errors.New("there are fewer fields behind the request than Envoy's default format has: want STATUS FLAGS RECEIVED SENT DURATION UPSTREAM \"X-FORWARDED-FOR\" \"USER-AGENT\"")
	}
	if err = e.setStatus(words[0]); err != nil {
		return e, err
	}
	e.Bytes, _ = strconv.ParseInt(words[3], 10, 64) // a - is 0
	forwarded, rest, err := cutQuoted(`"`+quoted, "X-Forwarded-For")
	if err != nil {
		return e, err
	}
	if agent, _, err := cutQuoted(strings.TrimPrefix(rest, " "), "user agent"); err == nil {
		e.UserAgent = headerValue(agent)
	}
	e.RemoteAddr = "-"
	if forwarded != "-" {
		e.RemoteAddr = clientOf(forwarded)
	}
	return e, nil
}

// albTypes begin the lines of an Application Load Balancer.
var albTypes = []string{"http ", "https ", "h2 ", "grpcs ", "ws ", "wss "}

// isALB reports whether a line is one of an Application Load Balancer: a type, and a time.
func isALB(line []byte) bool {
	for _, t := range albTypes {
		if rest, found := bytes.CutPrefix(line, []byte(t)); found {
			return len(rest) > 10 && rest[4] == '-' && rest[10] == 'T'
		}
	}
	return false
}

// albFields is the number of fields before the request of an Application Load Balancer.
const albFields = 12

// parseALB parses a line of an Application Load Balancer,
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html:
//
//	TYPE TIME ELB CLIENT:PORT TARGET:PORT T1 T2 T3 STATUS TARGET-STATUS RECEIVED SENT "METHOD URL PROTO" "USER-AGENT" ...
func parseALB(s string) (e Entry, err error) {
	fields, quoted, ok := strings.Cut(s, ` "`)
	words := strings.Fields(fields)
	if !ok || len(words) != albFields {
		return e, fmt.Errorf("there are %d fields before the request: want the %d of an Application Load Balancer", len(words), albFields)
	}
	if e.Time, err = timeRFC3339(words[1]); err != nil {
		return e, err
	}
	e.RemoteAddr = withoutPort(words[3])
	if err = e.setStatus(words[8]); err != nil {
		return e, err
	}
	e.Bytes, _ = strconv.ParseInt(words[11], 10, 64) // a - is 0
	rest, err := e.parseRequest(`"` + quoted)
	if err != nil {
		return e, err
	}
	if agent, _, err := cutQuoted(strings.TrimPrefix(rest, " "), "user agent"); err == nil {
		e.UserAgent = headerValue(agent)
	}
	return e, nil
}

// heading reads a line that begins with #: #Fields: names the columns of the lines that follow, as
// CloudFront writes them.
func (r *Reader) heading(line string) error {
	if names, found := strings.CutPrefix(line, "#Fields:"); found {
		r.columns = strings.Fields(names)
	}
	return nil
}

// parseColumns parses a line of a standard log of CloudFront,
// https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/AccessLogs.html, with columns between
// tabs, or of IIS, https://learn.microsoft.com/en-us/windows/win32/http/w3c-logging, with columns between
// spaces. A line #Fields: before it has their names. Values are encoded as in URLs.
func (r *Reader) parseColumns(s string) (e Entry, err error) {
	separator, between := "\t", "tabs"
	if !strings.Contains(s, "\t") {
		separator, between = " ", "spaces"
	}
	values := strings.Split(s, separator)
	if len(values) != len(r.columns) {
		there := fmt.Sprintf("there are %d columns", len(values))
		if len(values) == 1 {
			there = "there is 1 column"
		}
		return e, fmt.Errorf("%s between %s: want the %d that the line #Fields: names", there, between, len(r.columns))
	}
	column := func(name string) string {
		for i, c := range r.columns {
			if c == name && values[i] != "-" {
				return decodePath(values[i])
			}
		}
		return ""
	}
	if e.Time, err = timeRFC3339(column("date") + "T" + column("time") + "Z"); err != nil {
		return e, err
	}
	e.RemoteAddr, e.Method, e.Target, e.Proto = column("c-ip"), column("cs-method"), column("cs-uri-stem"), cmp.Or(column("cs-protocol-version"), column("cs-version"))
	if e.RemoteAddr == "" || !isToken(e.Method) || e.Target == "" {
		return e, errors.New("c-ip, cs-method or cs-uri-stem is empty: want the columns of a standard log of CloudFront, or of IIS")
	}
	if query := column("cs-uri-query"); query != "" {
		e.Target += "?" + query
	}
	e.User, e.Referer, e.UserAgent = column("cs-username"), column("cs(Referer)"), column("cs(User-Agent)")
	e.Bytes, _ = strconv.ParseInt(column("sc-bytes"), 10, 64)
	return e, e.setStatus(column("sc-status"))
}

// decodePath decodes the %HH of a value, or returns it as it is if it is not well encoded.
func decodePath(s string) string {
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}

// setStatus sets the status, which is three digits, or 0 or - for a request without a response.
func (e *Entry) setStatus(s string) error {
	if s == "-" || s == "0" || s == "000" {
		return nil
	}
	if len(s) != 3 || !allDigits(s) {
		return fmt.Errorf("the status is %s: want three digits", quote(s))
	}
	e.Status, _ = strconv.ParseInt(s, 10, 64) // three digits fit
	return nil
}

// timeRFC3339 parses a time such as 2026-03-01T10:00:00.123Z into UTC.
func timeRFC3339(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, fmt.Errorf("the time is %s: want for example 2026-03-01T10:00:00Z", quote(s))
	}
	return t.UTC(), nil
}

// withoutPort returns the address of address:port.
func withoutPort(s string) string {
	if at, err := netip.ParseAddrPort(s); err == nil {
		return at.Addr().String()
	}
	return s
}
