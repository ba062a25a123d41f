package accesslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The names under which servers log a value in JSON: those of nginx by its common examples, of
// Caddy, Traefik and Envoy. A dot leads into an object.
var (
	jsonTimes     = []string{"time", "timestamp", "@timestamp", "time_iso8601", "StartUTC", "start_time", "ts", "time_local", "msec"}
	jsonAddrs     = []string{"client_ip", "remote_addr", "remote_ip", "request.client_ip", "request.remote_ip", "ClientHost", "x_forwarded_for", "downstream_remote_address", "downstream_remote_address_without_port"}
	jsonMethods   = []string{"method", "request_method", "RequestMethod", "request.method"}
	jsonTargets   = []string{"request_uri", "uri", "path", "url", "RequestPath", "request.uri"}
	jsonStatuses  = []string{"status", "status_code", "response_code", "DownstreamStatus"}
	jsonUsers     = []string{"user", "remote_user", "user_id", "ClientUsername"}
	jsonAgents    = []string{"user_agent", "http_user_agent", "agent", "request_User-Agent"}
	jsonReferers  = []string{"referer", "referrer", "http_referer", "request_Referer"}
	jsonBytes     = []string{"body_bytes_sent", "bytes_sent", "size", "DownstreamContentSize"}
	jsonProtocols = []string{"protocol", "server_protocol", "proto", "RequestProtocol", "request.proto"}
)

// parseJSON parses a line that is a JSON object with a time, an address, a method and a target, or
// a request line under "request" in place of both.
func parseJSON(line []byte) (e Entry, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var values map[string]any
	if err := decoder.Decode(&values); err != nil {
		return e, errors.New("the line begins like JSON and is not: want one object a line")
	}
	if _, isText := values["log"].(string); isText && values["stream"] != nil && values["request"] == nil && firstOf(values, jsonMethods) == "" {
		return e, errors.New("the line of a log is inside of one of Docker: jq -r .log FILE takes it out")
	}
	stamp := firstOf(values, jsonTimes)
	if stamp == "" {
		return e, fmt.Errorf("the object has no time: want one of %s", strings.Join(jsonTimes, ", "))
	}
	if e.Time, err = anyTime(stamp); err != nil {
		return e, err
	}
	if line, ok := values["request"].(string); ok {
		if err := e.splitRequest(line); err != nil {
			return e, err
		}
	} else {
		e.Method, e.Target, e.Proto = firstOf(values, jsonMethods), firstOf(values, jsonTargets), firstOf(values, jsonProtocols)
	}
	switch {
	case !isToken(e.Method):
		return e, fmt.Errorf("the object has no method: want one of %s, or a request line in request", strings.Join(jsonMethods, ", "))
	case e.Target == "":
		return e, fmt.Errorf("the object has no target: want one of %s", strings.Join(jsonTargets, ", "))
	}
	if e.RemoteAddr = withoutPort(firstOf(values, jsonAddrs)); e.RemoteAddr == "" {
		return e, fmt.Errorf("the object has no address of a client: want one of %s", strings.Join(jsonAddrs, ", "))
	}
	e.RemoteAddr = clientOf(e.RemoteAddr)
	e.User, e.UserAgent, e.Referer = dashless(firstOf(values, jsonUsers)), dashless(firstOf(values, jsonAgents)), dashless(firstOf(values, jsonReferers))
	if n, err := strconv.ParseInt(firstOf(values, jsonBytes), 10, 64); err == nil && n > 0 {
		e.Bytes = n
	}
	if status := firstOf(values, jsonStatuses); status != "" {
		return e, e.setStatus(status)
	}
	return e, nil
}

// firstOf returns the first of values that is a text or a number and not empty, or "".
func firstOf(values map[string]any, names []string) string {
	for _, name := range names {
		at := values
		for {
			outer, inner, found := strings.Cut(name, ".")
			if !found {
				break
			}
			at, _ = at[outer].(map[string]any)
			name = inner
		}
		switch v := at[name].(type) {
		case string:
			if v != "" {
				return v
			}
		case json.Number:
			return v.String()
		}
	}
	return ""
}

func dashless(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

// anyTime parses a time as RFC 3339, as in Common Log Format, or as seconds or milliseconds since
// the epoch.
func anyTime(s string) (time.Time, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		const mostSeconds = 1e11 // the year 5138; more are milliseconds
		if seconds > mostSeconds {
			seconds /= 1000
		}
		if !(seconds > 0 && seconds < mostSeconds) {
			return time.Time{}, fmt.Errorf("the time is %s: want seconds or milliseconds since 1970", quote(s))
		}
		whole, rest := math.Modf(seconds)
		return time.Unix(int64(whole), int64(rest*1e9)).UTC(), nil
	}
	if hasTimestampShape(s) {
		return parseTimestamp(s)
	}
	return timeRFC3339(s)
}
