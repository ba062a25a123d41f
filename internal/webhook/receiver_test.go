package webhook

import (
	"io"
	"net/http"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// newReceiver returns the receiver of docs/operations.md.
func newReceiver(secret string, take func(id string, event []byte) error) (http.HandlerFunc, error) {
	hook, err := standardwebhooks.NewWebhook(secret) // a line of the secret file
	if err != nil {
		return nil, err
	}
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || hook.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if take(r.Header.Get("webhook-id"), body) != nil { // an id that was taken before is no error
			w.WriteHeader(http.StatusServiceUnavailable) // it comes again
		}
	}, nil
}
