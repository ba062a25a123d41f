package accesslog

import "testing"

// TestForwarded: the client of a list of addresses is read in each format, and its other fields stay where they are.
func TestForwarded(t *testing.T) {
	for list, want := range map[string]string{
		"203.0.113.51, 10.0.0.5":               "203.0.113.51",
		"203.0.113.51,10.0.0.5":                "203.0.113.51",
		"198.51.100.9, 203.0.113.51, 10.0.0.5": "203.0.113.51",
		"10.1.1.1, 192.168.0.5":                "10.1.1.1",
		"unknown, 203.0.113.51":                "203.0.113.51",
		"2001:db8::1, fd00::1, 127.0.0.1":      "2001:db8::1",
		"203.0.113.51":                         "203.0.113.51",
		"203.0.113.51:1234, 10.0.0.5":          "203.0.113.51",
		"[2001:db8::1]:44, 10.0.0.5:80":        "2001:db8::1",
		"203.0.113.51, 169.254.1.1":            "203.0.113.51",
		"203.0.113.51, 100.64.0.3, 0.0.0.0":    "203.0.113.51",
		"203.0.113.51, ::ffff:10.0.0.5":        "203.0.113.51",
	} {
		for _, line := range []string{list, `"` + list + `"`} {
			line += ` - joe [17/May/2015:12:00:00 +0000] "GET /a HTTP/1.1" 200 5`
			if e, err := Parse([]byte(line)); err != nil || e.RemoteAddr != want || e.User != "joe" || e.Target != "/a" {
				t.Errorf("%s: %+v, %v", line, e, err)
			}
		}
		e, err := parseJSON([]byte(`{"time":"2026-03-01T10:00:00Z","x_forwarded_for":"` + list + `","request":"GET /a HTTP/1.1"}`))
		if err != nil || e.RemoteAddr != want {
			t.Errorf("JSON with %s: %+v, %v", list, e, err)
		}
		e, err = parseEnvoy(`[2026-03-01T10:00:05.000Z] "GET /a HTTP/1.1" 200 - 0 1045 12 11 "` + list + `" "curl/8.5" "id" "example.com" "10.0.0.1:80"`)
		if err != nil || e.RemoteAddr != want {
			t.Errorf("Envoy with %s: %+v, %v", list, e, err)
		}
	}
	for _, line := range []string{"a,", "a, ", "a, b", "a, b, - - [x", ", , ,"} {
		if e, err := Parse([]byte(line)); err == nil {
			t.Errorf("%q: %+v", line, e)
		}
	}
}

// TestSyslog: a line is read behind the header of syslog, and one of another begin is not cut.
func TestSyslog(t *testing.T) {
	const rest = `192.0.2.1 - - [17/May/2015:12:00:00 +0000] "GET /a: HTTP/1.1" 200 5`
	for header, want := range map[string]string{
		"":                                   rest,
		"Nov 16 00:00:01 web1 nginx: ":       rest,
		"Nov  6 00:00:01 web1 nginx[4711]: ": rest,
		"<190>Nov 16 00:00:01 web1 nginx: ":  rest,
		"2026-11-16T00:00:01.123456+01:00 web1 haproxy: ":                                                  rest,
		"2026-11-16T00:00:01Z web1 nginx: ":                                                                rest,
		"2026-11-16T00:00:01.123456789+01:00 web1 nginx: ":                                                 rest,
		"<190>Nov 16 00:00:01 nginx: ":                                                                     rest,
		"Nov 16 00:00:01 nginx[4711]: ":                                                                    rest,
		"<165>1 2026-11-16T00:00:01.003Z web1 nginx 4711 - - ":                                             rest,
		"<165>1 - - nginx - access - \xef\xbb\xbf":                                                         rest,
		"<165>1 2026-11-16T00:00:01.003Z web1 nginx - - [a@1 x=\"y \\\" \\] z\"][origin ip=\"10.0.0.1\"] ": rest,
		"November 16 web1 nginx: ":                                                                         "November 16 web1 nginx: " + rest,
	} {
		if got := string(withoutSyslog([]byte(header + rest))); got != want {
			t.Errorf("%s: %s", header, got)
		}
	}
}
