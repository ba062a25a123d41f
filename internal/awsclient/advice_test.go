package awsclient

import (
	"errors"
	"fmt"
	"net"
	"testing"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
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
	call := func(err error) error {
		return fmt.Errorf("scan limits: %w", &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Scan", Err: err})
	}
	for want, err := range map[string]error{
		adviceProfile: fmt.Errorf("configure AWS: %w", awsconfig.SharedConfigProfileNotExistError{Profile: "nope"}),
		adviceHost:    call(&net.OpError{Op: "dial", Err: &net.DNSError{Name: "dynamodb.europe.amazonaws.com", IsNotFound: true}}),
		adviceNetwork: call(&net.OpError{Op: "dial", Err: errors.New("connection refused")}),
		adviceURL:     call(errors.New(`Post "/nonsense": unsupported protocol scheme ""`)),
	} {
		if got := Advice(err); got != want {
			t.Errorf("%v: %q", err, got)
		}
	}
	if got := Advice(&net.OpError{Op: "dial", Err: errors.New("connection refused")}); got != "" {
		t.Errorf("of a call to Redis: %q", got)
	}
	if got := Advice(errors.New("no such file")) + Advice(nil); got != "" {
		t.Errorf("of what has nothing to do with AWS: %q", got)
	}
}
