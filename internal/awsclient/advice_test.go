package awsclient

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
)

// TestAdvice: refusals that concern credentials have advice in both families of codes,
// others have none.
func TestAdvice(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-central-1")
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
	} {
		if got := Advice(err); got != want {
			t.Errorf("%v: %q", err, got)
		}
	}
	if got := Advice(call(&url.Error{Op: "Post", URL: "http://127.0.0.1:1/", Err: os.ErrDeadlineExceeded})); got != adviceNetwork {
		t.Errorf("of a call that hangs: %q", got)
	}
	if got := Advice(&net.OpError{Op: "dial", Err: errors.New("connection refused")}); got != "" {
		t.Errorf("of a call to Redis: %q", got)
	}
	if got := Advice(errors.New("no such file")) + Advice(nil); got != "" {
		t.Errorf("of what has nothing to do with AWS: %q", got)
	}
}

// TestAdviceRegion: a region that is none is named, the one that counts first, where the host or the answer may be wrong because of it.
func TestAdviceRegion(t *testing.T) {
	const text = "AWS_REGION is \"eu-central1\", which is no region of AWS: write for example eu-central-1"
	for _, row := range []struct{ environ, want string }{
		{"AWS_REGION=eu-central1", text},
		{"AWS_DEFAULT_REGION=frankfurt AWS_REGION=eu-central1", text},
		{"AWS_DEFAULT_REGION=frankfurt", "AWS_DEFAULT_REGION is \"frankfurt\", which is no region of AWS: write for example eu-central-1"},
		{"AWS_DEFAULT_REGION=frankfurt AWS_REGION=us-gov-west-1", ""},
		{"AWS_REGION= AWS_PROFILE=x", ""},
		{"AWS_REGION=eusc-de-east-1", ""},
		{"AWS_REGION=wJalrXUtnFEMI/K7MDENG", "AWS_REGION is no region: write for example eu-central-1"},
	} {
		if got := badRegion(strings.Fields(row.environ)); got != row.want {
			t.Errorf("%s: %q", row.environ, got)
		}
	}
	t.Setenv("AWS_REGION", "eu-central1")
	if got := Advice(&smithy.OperationError{ServiceID: "DynamoDB", Err: &net.DNSError{IsNotFound: true}}); got != text {
		t.Errorf("of a host: %q", got)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:8000")
	if got := Advice(&smithy.OperationError{ServiceID: "DynamoDB", Err: &net.DNSError{IsNotFound: true}}); got != text {
		t.Errorf("of a host beside the endpoint of another service: %q", got)
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://dynamodb-locl:8000")
	if got := Advice(&smithy.OperationError{ServiceID: "DynamoDB", Err: &net.DNSError{IsNotFound: true}}); got != adviceHost {
		t.Errorf("of the host of an endpoint: %q", got)
	}
	if got := Advice(&smithy.OperationError{ServiceID: "DynamoDB", Err: &smithy.GenericAPIError{Code: "ExpiredToken"}}); got != adviceExpired {
		t.Errorf("of a refusal: %q", got)
	}
}

// TestAdviceEndpoint: advice about the URL of a service names its variable, and the URL that is meant.
func TestAdviceEndpoint(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"AWS_ENDPOINT_URL", "127.0.0.1:17410", "AWS_ENDPOINT_URL is no URL: write http://127.0.0.1:17410, or unset it"},
		{"AWS_ENDPOINT_URL", "localhost:17410", "AWS_ENDPOINT_URL is no URL: write http://localhost:17410, or unset it"},
		{"AWS_ENDPOINT_URL_DYNAMODB", "http://", "AWS_ENDPOINT_URL_DYNAMODB is no URL: write for example http://127.0.0.1:8000, or unset it"},
		{"AWS_ENDPOINT_URL", "a:b@c:1", "AWS_ENDPOINT_URL is no URL: write for example http://127.0.0.1:8000, or unset it"},
		{"AWS_ENDPOINT_URL", "http://127.0.0.1:17410", ""},
	} {
		if got := badEndpoint(row.name, row.text); got != row.want {
			t.Errorf("%s: %s", row.text, got)
		}
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "nonsense")
	t.Setenv("AWS_ENDPOINT_URL", "127.0.0.1:17410")
	if got := Advice(&smithy.OperationError{Err: errors.New("failed to resolve service endpoint")}); got != "AWS_ENDPOINT_URL is no URL: write http://127.0.0.1:17410, or unset it" {
		t.Error(got)
	}
}

// TestPlain: errors of calls without an answer do not name the parts of one.
func TestPlain(t *testing.T) {
	const text = "operation error DynamoDB: Scan, exceeded maximum number of attempts, 1, https response error StatusCode: 0, RequestID: , request send failed"
	if got := Plain(text); got != "operation error DynamoDB: Scan, exceeded maximum number of attempts, 1, request send failed" {
		t.Error(got)
	}
	if got := Plain("https response error StatusCode: 0, RequestID: , HostID: , request send failed"); got != "request send failed" {
		t.Error(got)
	}
}

// TestExplainAttr: errors of log lines have no empty parts, and the remedy of those of AWS; other values
// are as before.
func TestExplainAttr(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: ExplainAttr}))
	failed := &smithy.OperationError{ServiceID: "SQS", OperationName: "ReceiveMessage", Err: fmt.Errorf("https response error StatusCode: 0, RequestID: , request send failed, %w",
		&net.OpError{Op: "dial", Err: errors.New("connection refused")})}
	log.Error("failed", "error", fmt.Errorf("receive updates: %w", failed), "of", 3, "other", errors.New("closed"))
	_, got, _ := strings.Cut(out.String(), "msg=")
	want := `failed error="receive updates: operation error SQS: ReceiveMessage, request send failed, dial: connection refused; ` + adviceNetwork + `" of=3 other=closed` + "\n"
	if got != want {
		t.Errorf("%s want %s", got, want)
	}
}
