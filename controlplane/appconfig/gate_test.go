package appconfig

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// answers is an AppConfig with a list of responses.
type answers struct {
	configurations []func(http.ResponseWriter)
	sessions       int
	tokens         []string // of the requests
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/configurationsessions" {
		a.sessions++
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"InitialConfigurationToken":"s` + string(rune('0'+a.sessions)) + `"}`))
		return
	}
	a.tokens = append(a.tokens, r.URL.Query().Get("configuration_token"))
	next := a.configurations[0]
	a.configurations = a.configurations[1:]
	next(w)
}

// says returns a body, the next token and the seconds until the next poll.
func says(body, token, seconds string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Next-Poll-Configuration-Token", token)
		w.Header().Set("Next-Poll-Interval-In-Seconds", seconds)
		_, _ = w.Write([]byte(body))
	}
}

// fails returns an error.
func fails(code int, kind string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("X-Amzn-ErrorType", kind)
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"Message":"no"}`))
	}
}

// TestPoll: a new configuration is applied once. An error keeps it and begins another
// session. There is at most one request a second.
func TestPoll(t *testing.T) {
	a := &answers{configurations: []func(http.ResponseWriter){
		says(`{"revision":1}`, "t1", "20"),
		says(``, "t2", "0"), // unchanged
		says(`{"revision":2}`, "t3", "-5"),
		fails(400, "BadRequestException"), // the token is too old
		says(`{"revision":2}`, "t4", "30"),
		fails(404, "ResourceNotFoundException"),
		says(strings.Repeat("x", maxBody+1), "t5", "1"),
		func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }, // of another server
	}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	var applied, failed []string
	p := NewPoller(aws.Config{Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 1},
		Name{"app", "env", "pro"}, func(body []byte) { applied = append(applied, string(body)) }, func(err error) { failed = append(failed, err.Error()) })
	var pauses []time.Duration
	for len(a.configurations) > 0 {
		p.Poll(context.Background())
		pauses = append(pauses, p.pause)
	}
	if want := []string{`{"revision":1}`, `{"revision":2}`, `{"revision":2}`}; !slices.Equal(applied, want) {
		t.Errorf("applied %v", applied)
	}
	if want := []string{"s1", "t1", "t2", "t3", "s2", "t4", "s3", "s4"}; !slices.Equal(a.tokens, want) {
		t.Errorf("asked with %v", a.tokens)
	}
	const s = time.Second
	if want := []time.Duration{20 * s, s, s, 15 * s, 30 * s, 15 * s, 15 * s, 15 * s}; !slices.Equal(pauses, want) {
		t.Errorf("pauses of %v", pauses)
	}
	if len(failed) != 4 || !strings.Contains(failed[3], "no token") || !strings.Contains(failed[1], "nothing was deployed to app/env/pro") || !strings.Contains(failed[2], "65537 bytes") {
		t.Errorf("failed with %q", failed)
	}
}

func TestParseName(t *testing.T) {
	if n, err := ParseName("appconfig://a/b/c"); err != nil || n != (Name{"a", "b", "c"}) {
		t.Errorf("%+v, %v", n, err)
	}
	for _, text := range []string{"", "a/b/c", "appconfig://a/b", "appconfig://a//c", "appconfig://a/b/c/d", "dynamodb://a/b/c"} {
		if n, err := ParseName(text); err == nil {
			t.Errorf("%q is %+v", text, n)
		}
	}
}
