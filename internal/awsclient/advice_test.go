package awsclient

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/smithy-go"
)

// TestAdvice: refusals that concern credentials have advice in both families of codes,
// others have none.
func TestAdvice(t *testing.T) {
	for code, want := range map[string]string{
		"ExpiredTokenException": adviceExpired, "ExpiredToken": adviceExpired, "UnrecognizedClientException": adviceKey, "InvalidClientTokenId": adviceKey,
		"AccessDeniedException": adviceDenied, "AuthorizationError": adviceDenied, "ValidationException": "",
	} {
		if got := Advice(fmt.Errorf("scan: %w", &smithy.GenericAPIError{Code: code})); got != want {
			t.Errorf("%s: %q", code, got)
		}
	}
	if got := Advice(errors.New("scan limits: operation error DynamoDB: Scan, get identity: get credentials: failed")); got != adviceNone {
		t.Errorf("without credentials: %q", got)
	}
	if got := Advice(errors.New("no such file")) + Advice(nil); got != "" {
		t.Errorf("of what has nothing to do with AWS: %q", got)
	}
}
