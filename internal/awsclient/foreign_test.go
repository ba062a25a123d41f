package awsclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/appconfig"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestAdviceForeign: a server that replies, and is not AWS or lacks the service, has advice about its URL.
func TestAdviceForeign(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		if status == http.StatusForbidden {
			fmt.Fprint(w, `{"detail":"no"}`)
			return
		}
		fmt.Fprint(w, "<!DOCTYPE html><html><meta charset=utf-8><body>welcome</body></html>")
	}))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	c, err := Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := aws.String("abc1234")
	calls := map[[2]string]func(context.Context) error{
		{"DynamoDB", "DYNAMODB"}: func(ctx context.Context) error {
			_, err := dynamodb.NewFromConfig(c).Scan(ctx, &dynamodb.ScanInput{TableName: name})
			return err
		},
		{"AppConfig", "APPCONFIG"}: func(ctx context.Context) error {
			_, err := appconfig.NewFromConfig(c).GetApplication(ctx, &appconfig.GetApplicationInput{ApplicationId: name})
			return err
		},
		{"S3", "S3"}: func(ctx context.Context) error {
			_, err := s3.NewFromConfig(c).ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: name})
			return err
		},
		{"SNS", "SNS"}: func(ctx context.Context) error {
			_, err := sns.NewFromConfig(c).ListTopics(ctx, &sns.ListTopicsInput{})
			return err
		},
		{"SQS", "SQS"}: func(ctx context.Context) error {
			_, err := sqs.NewFromConfig(c).ListQueues(ctx, &sqs.ListQueuesInput{})
			return err
		},
	}
	status = http.StatusForbidden // in JSON
	if err := calls[[2]string{"DynamoDB", "DYNAMODB"}](t.Context()); Advice(err) != fmt.Sprintf(adviceAnswer, "DynamoDB", "AWS_ENDPOINT_URL_DYNAMODB") {
		t.Errorf("%v: %q", err, Advice(err))
	}
	for _, status = range []int{http.StatusOK, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented} {
		for service, call := range calls {
			err := call(t.Context())
			if err == nil {
				continue // the body of a success may be of any form
			}
			if got, want := Advice(err), fmt.Sprintf(adviceAnswer, service[0], "AWS_ENDPOINT_URL_"+service[1]); got != want {
				t.Errorf("%d, %v: %q, want %q", status, err, got, want)
			}
		}
	}
}

// TestAdviceOtherProtocol: a server that hangs up, or does not speak TLS, has advice.
func TestAdviceOtherProtocol(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	for url, want := range map[string]string{server.URL: adviceClosed, strings.Replace(server.URL, "http:", "https:", 1): adviceTLS} {
		t.Setenv("AWS_ENDPOINT_URL", url)
		c, err := Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = dynamodb.NewFromConfig(c).Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("limits")})
		if err == nil || Advice(err) != want {
			t.Errorf("%s: %v: %q, want %q", url, err, Advice(err), want)
		}
	}
}
