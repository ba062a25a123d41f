package accesslog

import "testing"

func TestPathOfTarget(t *testing.T) {
	tests := []struct{ target, path, two string }{
		{"/presentations/logstash-monitorama-2013/images/x.png?x=1", "/presentations/logstash-monitorama-2013/images/x.png", "/presentations/logstash-monitorama-2013"},
		{"/", "/", "/"},
		{"/a", "/a", "/a"},
		{"/a/", "/a/", "/a"},
		{"/a/b/", "/a/b/", "/a/b"},
		{"/a/b/c", "/a/b/c", "/a/b"},
		{"//a///b//c", "//a///b//c", "/a/b"},
		{"///", "///", "/"},
		{"/a#x/b", "/a", "/a"},
		{"/a?x#y", "/a", "/a"},
		{"?x=1", "/", "/"},
		{"/go?to=http://h/x/y", "/go", "/go"},
		{"/go/http://h/x/y", "/go/http://h/x/y", "/go/http:"},
		{"http://host/a/b", "/a/b", "/a/b"},
		{"HTTPS://host:443/a/b/c?d", "/a/b/c", "/a/b"},
		{"http://host", "/", "/"},
		{"http://host?x", "/", "/"},
		{"1http://host/a", "1http://host/a", "1http:/host"},
		{"*", "*", "*"},
		{"host:443", "host:443", "host:443"},
		{"a/b/c", "a/b/c", "a/b"},
		{"/a/../b", "/a/../b", "/a/.."},
		{"/%2Fa/b c/d", "/%2Fa/b c/d", "/%2Fa/b c"},
	}
	for _, tt := range tests {
		path := pathOf(tt.target)
		if path != tt.path {
			t.Errorf("pathOf(%q) = %q, want %q", tt.target, path, tt.path)
		}
		if two := firstSegments(path, 2); two != tt.two {
			t.Errorf("two segments of %q are %q, want %q", tt.target, two, tt.two)
		}
	}
}

func TestQueryValue(t *testing.T) {
	tests := []struct{ target, name, want string }{
		{"/a?b=c", "b", "c"},
		{"/a?b=c&b=d", "b", "c"},
		{"/a?bb=c&b=d", "b", "d"},
		{"/a?b", "b", ""},
		{"/a?b=c=d", "b", "c=d"},
		{"/a?x=1&&b=rate+limit%21", "b", "rate limit!"},
		{"/a?b=100%", "b", "100%"},
		{"/a?%62=c", "b", "c"},
		{"/a?b=c#d", "b", "c"},
		{"/a#?b=c", "b", ""},
		{"/a?x=1?b=c", "b", ""},
		{"/b=c", "b", ""},
		{"http://h/a?b=c", "b", "c"},
	}
	for _, tt := range tests {
		if got := queryValue(tt.target, tt.name); got != tt.want {
			t.Errorf("queryValue(%q, %q) = %q, want %q", tt.target, tt.name, got, tt.want)
		}
	}
}

func TestHostOfURL(t *testing.T) {
	for url, want := range map[string]string{
		"http://www.Example.com/a":       "www.example.com",
		"https://example.com":            "example.com",
		"http://example.com:8080?x":      "example.com",
		"http://user:pw@example.com/":    "example.com",
		"http://[2001:DB8::1]:80/":       "2001:db8::1",
		"http://[2001:db8::1":            "2001:db8::1",
		"http://a/http://b/":             "a",
		"android-app://com.example.app/": "com.example.app",
		"http:///a":                      "",
		"/a":                             "",
		"example.com":                    "",
		"://x":                           "",
		"":                               "",
	} {
		if got := hostOfURL(url); got != want {
			t.Errorf("hostOfURL(%q) = %q, want %q", url, got, want)
		}
	}
}

func TestAgentFamily(t *testing.T) {
	const webkit = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
	for agent, want := range map[string]string{
		"": "",
		webkit + "Chrome/32.0.1700.77 Safari/537.36":                                          "Chrome",
		webkit + "Chrome/80.0 Safari/537.36 Edg/80.0":                                         "Edge",
		webkit + "Chrome/28.0 Safari/537.36 OPR/15.0":                                         "Opera",
		webkit + "Version/6.0 Safari/536.26":                                                  "Safari",
		"Mozilla/5.0 (X11; Linux x86_64; rv:38.0) Gecko/20100101 Firefox/38.0":                "Firefox",
		"Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)":                                  "IE",
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)":            "Googlebot",
		"Mozilla/5.0 (iPhone) Version/8.0 Safari/600.1.4 (compatible; bingbot/2.0)":           "bingbot",
		"Mozilla/5.0 (compatible; ExampleBot/1.0) Chrome/32.0":                                "bot",
		"Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)": "bot",
		"Opera/9.80 (Windows NT 6.1) Presto/2.12.388 Version/12.17":                           "Opera",
		"curl/7.38.0":     "curl",
		"Tiny Tiny RSS/1": "other",
	} {
		if got := agentFamily(agent); got != want {
			t.Errorf("agentFamily(%q) = %q, want %q", agent, got, want)
		}
	}
}
