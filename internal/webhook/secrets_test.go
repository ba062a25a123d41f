package webhook

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// TestSign checks the signature of an example that was computed by the reference library.
func TestSign(t *testing.T) {
	keys, err := parseSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
	if err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := sign(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, []byte(`{"test": 2432232314}`)); got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
}

// TestParseSecrets checks which files have secrets, and that errors have no part of them.
func TestParseSecrets(t *testing.T) {
	a, b, c := newSecret(), newSecret(), newSecret()
	shortest, longest := secretPrefix+strings.Repeat("hunter20", 4), secretPrefix+strings.Repeat("hunt", 21)+"hg=="
	for text, want := range map[string]string{
		a: "", a + "\n" + b: "", "\n\n" + a + "\r\n\r\n  " + b + "\t\n\n": "", shortest: "", longest: "",
		"": errNoSecret.Error(), "\n \n": errNoSecret.Error(),
		a + "\n" + b + "\n" + c:                  "there are more than 2: leave the new one and the one that it replaces",
		a + "\nhunter2":                          "line 2 does not begin with whsec_: printf 'whsec_%s\\n' \"$(openssl rand -base64 32)\" makes a good one",
		strings.TrimPrefix(a, secretPrefix):      "line 1 does not begin with whsec_",
		a + " " + b:                              "line 1 is not base64 behind whsec_",
		"\n" + a + "hunter2":                     "line 2 is not base64 behind whsec_",
		a + "\x00":                               "line 1 is not base64 behind whsec_",
		secretPrefix:                             "line 1 holds 0 bytes, and must hold 24 to 64",
		secretPrefix + strings.Repeat("hunt", 7): "line 1 holds 21 bytes, and must hold 24 to 64",
		secretPrefix + strings.Repeat("hunt", 21) + "hunt": "line 1 holds 66 bytes, and must hold 24 to 64",
	} {
		keys, err := parseSecrets(text)
		switch {
		case want == "" && (err != nil || len(keys) != strings.Count(text, secretPrefix)):
			t.Errorf("%q: %d keys, %v", text, len(keys), err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || keys != nil):
			t.Errorf("%q: %v, want %s", text, err, want)
		case err != nil && strings.Contains(err.Error(), "hunt"):
			t.Errorf("%q: the error has a part of it: %v", text, err)
		}
	}
}

// TestRotation checks that a changed file counts from the next attempt, that two secrets both sign, and
// that an unusable file leaves the earlier secrets in use and is logged once.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, next := newSecret(), newSecret()
		text, err := old+"\n", error(nil)
		e := &endpoint{t: t, secret: old}
		var log syncbuffer.Buffer
		s, openErr := New(Options{
			URL: "http://127.0.0.1/", SecretFile: "secrets", Transport: serve(t, e), Log: slog.New(slog.NewTextHandler(&log, nil)),
			ReadFile: func(string) (string, error) { return text, err },
		})
		if openErr != nil {
			t.Fatal(openErr)
		}
		end := start(t, s)
		for _, step := range []struct {
			text       string
			err        error
			verifies   string
			signatures int
		}{
			{old, nil, old, 1},
			{next + "\n" + old + "\n", nil, old, 2},
			{next + "\n" + old + "\n", nil, next, 2},
			{"", nil, old, 2}, // while the file is written again
			{"", nil, next, 2},
			{next, nil, next, 1},
			{"", nil, next, 1},
			{next, errors.New("no such file"), next, 1},
		} {
			text, err, e.secret = step.text, step.err, step.verifies
			send(t, s, "a")
			synctest.Wait()
			all := e.requests()
			if got := strings.Fields(all[len(all)-1].signature); len(got) != step.signatures {
				t.Errorf("with %q: signatures %q", step.text, got)
			}
		}
		end()
		expect(t, s, Counts{Sent: 8})
		if got := log.String(); strings.Count(got, "\n") != 3 || strings.Count(got, "there is none in it") != 2 || strings.Contains(got, "whsec_M") {
			t.Errorf("the log is %s", got)
		}
	})
}

// FuzzSecrets checks that any file is refused without a part of it in the error, or signs so that the
// reference library verifies by each of its lines.
func FuzzSecrets(f *testing.F) {
	for _, text := range []string{"", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\r\n\nwhsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "whsec_\n", "whsec_MfKQ9r8G\rKYqrTwjUPD8ILPZIo2LaLaSw"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := parseSecrets(text)
		if (err == nil) != (len(keys) == 1 || len(keys) == 2) {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		if err != nil {
			return
		}
		body, header := []byte("{}"), http.Header{}
		header.Set("webhook-id", "a")
		header.Set("webhook-timestamp", "1674087231")
		header.Set("webhook-signature", sign(keys, "a", 1674087231, body))
		lines := 0
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			lines++
			hook, err := standardwebhooks.NewWebhook(line)
			if err == nil {
				err = hook.VerifyIgnoringTimestamp(body, header)
			}
			if err != nil {
				t.Errorf("line %q: %v", line, err)
			}
		}
		if lines != len(keys) {
			t.Errorf("%d keys of %d lines", len(keys), lines)
		}
	})
}
