package awsclient

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// TestBoundedAnswers: an answer is read up to its bound, and a larger one is an error.
func TestBoundedAnswers(t *testing.T) {
	for _, row := range []struct {
		status, bytes int
		want          error
	}{
		{200, 0, nil},
		{200, maxAnswer, nil},
		{200, maxAnswer + 1, errLargeAnswer},
		{400, maxRefusal, nil},
		{400, maxRefusal + 1, errLargeAnswer},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(row.status)
			_, _ = io.WriteString(w, strings.Repeat("x", row.bytes))
		}))
		req, err := http.NewRequest(http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := boundedClient{server.Client()}.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if !errors.Is(err, row.want) || err == nil && len(body) != row.bytes {
			t.Errorf("%d bytes with status %d: read %d, %v", row.bytes, row.status, len(body), err)
		}
		_ = resp.Body.Close()
		server.Close()
	}
}

// TestLongErrorOfServer: the text of an error of a server is bounded, and its remedy follows it.
func TestLongErrorOfServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"AccessDeniedException","message":"`+strings.Repeat("é", 20_000)+`"}`)
	}))
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	c, err := Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = dynamodb.NewFromConfig(c).Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("limits")})
	if err == nil {
		t.Fatal("the call succeeds")
	}
	text := Explain(err)
	if len(text) > maxText+len(adviceDenied)+100 || !strings.HasSuffix(text, "...; "+adviceDenied) {
		t.Errorf("%d bytes: %.80s ... %s", len(text), text, text[max(0, len(text)-200):])
	}
}
