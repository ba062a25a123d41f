package dynamo

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/limitgate/limitgate/internal/awsclient"
)

// TestCheckDeadLetters: a queue that does not exist is an error, and one that SQS does not show is none.
func TestCheckDeadLetters(t *testing.T) {
	for code, want := range map[string]string{
		"AccessDeniedException":               "",
		"com.amazonaws.sqs#QueueDoesNotExist": "; there is no queue with this URL: ",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"` + code + `","message":"The specified queue does not exist."}`))
		}))
		defer server.Close()
		config := aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL, Credentials: aws.AnonymousCredentials{}}
		err := NewDeadLetters(config, server.URL+"/1/dead").Check(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(awsclient.Explain(err), want) {
			t.Errorf("%s: %v", code, err)
		}
	}
}
