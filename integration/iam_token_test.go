package integration

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// tokenReader checks tokens of IAM for a user of a cache as AWS does: a token is a presigned
// request, and the check computes its signature again. It shares no code with the program under
// test. See
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
type tokenReader struct {
	cache, user                string
	service, region            string
	serverless                 bool
	accessKey, secret, session string // session is empty for credentials that do not expire
}

const (
	tokenTime   = "20060102T150405Z"
	tokenExpiry = 15 * time.Minute
)

// parameters returns the parameters of a token that was made at a time, except its signature.
func (r *tokenReader) parameters(date string) map[string]string {
	all := map[string]string{
		"Action": "connect", "User": r.user, "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": r.accessKey + "/" + r.scope(date),
		"X-Amz-Date": date, "X-Amz-Expires": "900", "X-Amz-SignedHeaders": "host",
	}
	if r.serverless {
		all["ResourceType"] = "ServerlessCache"
	}
	if r.session != "" {
		all["X-Amz-Security-Token"] = r.session
	}
	return all
}

func (r *tokenReader) scope(date string) string {
	return strings.Join([]string{date[:min(8, len(date))], r.region, r.service, "aws4_request"}, "/")
}

// check returns an error unless a token is valid at a time.
func (r *tokenReader) check(token string, now time.Time) error {
	u, err := url.Parse("http://" + token)
	if err != nil {
		return errors.New("the token is no request")
	}
	got, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.Host != r.cache || u.Path != "/" || u.User != nil || u.Fragment != "" {
		return fmt.Errorf("the token is for %q, path %q", u.Host, u.Path)
	}
	date, signature := got.Get("X-Amz-Date"), got.Get("X-Amz-Signature")
	want := r.parameters(date)
	for name, text := range want {
		if !slices.Equal(got[name], []string{text}) {
			return fmt.Errorf("%s is %q, want %q", name, got[name], text)
		}
	}
	if len(got) != len(want)+1 || len(got["X-Amz-Signature"]) != 1 {
		return fmt.Errorf("the token has %d parameters, want %d", len(got), len(want)+1)
	}
	made, err := time.Parse(tokenTime, date)
	if err != nil || made.After(now.Add(time.Second)) || !now.Before(made.Add(tokenExpiry)) {
		return fmt.Errorf("the token is of %s, which is not valid at %s", date, now.UTC().Format(tokenTime))
	}
	got.Del("X-Amz-Signature")
	if !hmac.Equal([]byte(signature), []byte(r.sign(date, got.Encode()))) {
		return errors.New("the signature is wrong")
	}
	return nil
}

// sign returns the signature of a request with a sorted query.
func (r *tokenReader) sign(date, query string) string {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	canonical := strings.Join([]string{"GET", "/", query, "host:" + r.cache, "", "host", hash("")}, "\n")
	key := []byte("AWS4" + r.secret)
	for _, part := range strings.Split(r.scope(date), "/") {
		key = keyedHash(key, part)
	}
	return hex.EncodeToString(keyedHash(key, strings.Join([]string{"AWS4-HMAC-SHA256", date, r.scope(date), hash(canonical)}, "\n")))
}

func keyedHash(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// TestTokenReader: the check accepts the token of AWS's own implementation, and refuses it once
// it has expired, for anything else, and after any change.
func TestTokenReader(t *testing.T) {
	r := tokenReader{
		cache: "my-cache", user: "user123", service: "elasticache", region: "eu-west-1", serverless: true, accessKey: "accessKey", secret: "secretKey",
	}
	const token = "my-cache/?Action=connect&ResourceType=ServerlessCache&User=user123&X-Amz-Algorithm=AWS4-HMAC-SHA256" +
		"&X-Amz-Credential=accessKey%2F20240802%2Feu-west-1%2Felasticache%2Faws4_request&X-Amz-Date=20240802T121150Z&X-Amz-Expires=900" +
		"&X-Amz-SignedHeaders=host&X-Amz-Signature=5dda5db919b1337db6596b2a608924bc10197fb39289b933b60bdb114d5a70dc"
	made := time.Date(2024, 8, 2, 12, 11, 50, 0, time.UTC)
	for name, at := range map[string]time.Time{"made": made, "its end": made.Add(tokenExpiry - time.Second)} {
		if err := r.check(token, at); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, at := range map[string]time.Time{"before": made.Add(-time.Minute), "after its end": made.Add(tokenExpiry)} {
		if r.check(token, at) == nil {
			t.Errorf("accepted %s", name)
		}
	}
	for old, changed := range map[string]string{
		"my-cache/": "other-cache/", "/?": "/x?", "connect": "other", "ServerlessCache": "Other", "user123": "user124", "SHA256": "SHA1", "accessKey": "other",
		"20240802%2F": "20240803%2F", "eu-west-1": "eu-west-2", "elasticache": "memorydb", "20240802T121150Z": "20240802T121151Z", "=900": "=9000",
		"SignedHeaders=host": "SignedHeaders=", "5dda5d": "5dda5e", "&User=": "&User=root&User=", "my-cache": "user@my-cache",
	} {
		text := strings.Replace(token, old, changed, 1)
		if text == token || r.check(text, made.Add(time.Second)) == nil {
			t.Errorf("accepted %s", text)
		}
	}
	for _, text := range []string{"", "secret", "my-cache", "my-cache/?", token + "&Other=1", token[:len(token)-1], token + "#x", "\x00" + token, token + "&%zz"} {
		if r.check(text, made) == nil {
			t.Errorf("accepted %q", text)
		}
	}
	for name, other := range map[string]func(*tokenReader){
		"secret": func(r *tokenReader) { r.secret = "other" }, "session": func(r *tokenReader) { r.session = "other" },
		"kind": func(r *tokenReader) { r.serverless = false }, "user": func(r *tokenReader) { r.user = "user124" },
	} {
		changed := r
		if other(&changed); changed.check(token, made) == nil {
			t.Errorf("accepted with another %s", name)
		}
	}
}
