package redisauth

import (
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

func newTestIAM(t *testing.T, at *time.Time) *IAM {
	t.Helper()
	i, err := NewIAM(aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("accessKey", "secretKey", "")}, IAMOptions{Cache: "My-Cache", Serverless: true, User: "user123"})
	if err != nil {
		t.Fatal(err)
	}
	i.now = func() time.Time { return *at }
	return i
}

// TestToken compares a token with the one of AWS's own implementation for the same input.
func TestToken(t *testing.T) {
	at := time.Date(2024, 8, 2, 12, 11, 50, 0, time.UTC)
	user, token, err := newTestIAM(t, &at).Credentials(t.Context())
	if err != nil || user != "user123" {
		t.Fatal(user, err)
	}
	u, err := url.Parse("http://" + token)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"Action": "connect", "User": "user123", "ResourceType": "ServerlessCache", "X-Amz-Expires": "900", "X-Amz-Date": "20240802T121150Z",
		"X-Amz-SignedHeaders": "host", "X-Amz-Signature": "5dda5db919b1337db6596b2a608924bc10197fb39289b933b60bdb114d5a70dc",
	} {
		if got := u.Query().Get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if u.Host != "my-cache" {
		t.Errorf("the host is %q", u.Host)
	}
}

func TestTokenLife(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	i := newTestIAM(t, &at)
	token := func() string {
		_, text, err := i.Credentials(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := token()
	at = at.Add(tokenCached)
	if token() != first {
		t.Error("a token is not used again")
	}
	at = at.Add(time.Second)
	second := token()
	if second == first {
		t.Error("a token is used for too long")
	}
	if i.Refused(t.Context(), second) {
		t.Error("a token that was refused at once may be replaced by an equal one")
	}
	second = token()
	at = at.Add(time.Minute)
	if !i.Refused(t.Context(), second) || token() == second {
		t.Error("a token that is refused is kept")
	}
	if !i.Refused(t.Context(), first) {
		t.Error("a token of before is not replaced by the present one")
	}
}

func TestNewIAMRefuses(t *testing.T) {
	if _, err := NewIAM(aws.Config{}, IAMOptions{Cache: "c", User: "u"}); err == nil {
		t.Error("no region is accepted")
	}
	if _, err := NewIAM(aws.Config{Region: "eu-west-1"}, IAMOptions{Cache: "c"}); err == nil {
		t.Error("no user is accepted")
	}
}
