package awsclient

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// TestCredentialsThatHang: a request for the credentials of a container that gets no
// response times out and is retried. Without that no other call of the process could be
// signed.
func TestCredentialsThatHang(t *testing.T) {
	var asked atomic.Int64
	over := make(chan struct{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			<-over
			return
		}
		fmt.Fprintf(w, `{"AccessKeyId":"key","SecretAccessKey":"secret","Token":"token","Expiration":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	defer endpoint.Close()
	defer close(over)
	for name, value := range map[string]string{
		"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": endpoint.URL,
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	config, err := Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*credentialsCall)
	defer cancel()
	got, err := config.Credentials.Retrieve(ctx)
	if err != nil || got.AccessKeyID != "key" {
		t.Errorf("after %d requests %q, %v", asked.Load(), got.AccessKeyID, err)
	}
}
