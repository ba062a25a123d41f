// Package awstest gives tests an AWS of their own: moto_server, a real emulator that
// speaks the real protocols. It promises that the emulator and all connections to it
// are gone when the test is over.
//
// The emulator is the file named by LIMITGATE_MOTO, or moto_server from PATH. Where there
// is none tests fail and say how to get it. Tests of what is done at the same time have
// DynamoDB Local beside it, AWS's own, from the folder named by LIMITGATE_DYNAMODB; they
// run without it, too, and say so.
package awstest

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/limitgate/limitgate/internal/servers"
)

const (
	region = "eu-central-1"
	dummy  = "awstest" // what stands for both parts of a key that is none
)

// AWS is a running emulator. Its methods may be called from any goroutine.
type AWS struct {
	*servers.Moto
	// Config leads clients to the emulator.
	Config aws.Config
	// Tables names what keeps the tables, for people.
	Tables string

	tables string // host and port of what keeps the tables
}

// Start starts an emulator, and ends it when the test is over.
func Start(tb testing.TB) *AWS {
	tb.Helper()
	moto, err := servers.StartMoto(tb.TempDir())
	if err != nil {
		tb.Fatalf("start an emulator of AWS: %v", err)
	}
	tb.Cleanup(func() {
		if err := moto.Close(); err != nil {
			tb.Errorf("end the emulator of AWS: %v", err)
		}
	})
	return lead(tb, &AWS{Moto: moto, Tables: "moto", tables: moto.Addr})
}

// StartAtomic is Start with tables that look at a condition and write in one step, as
// DynamoDB does: those of DynamoDB Local or, where it is not to be had, those of moto with
// one request at a time, since it does it in two. The test's log says which.
func StartAtomic(tb testing.TB) *AWS {
	tb.Helper()
	a := Start(tb)
	if os.Getenv(servers.DynamoDBVariable) == "" {
		a = a.Through(tb, &Relay{OneByOne: true})
		a.Tables = "moto, one request at a time"
		tb.Logf("the tables are those of %s", a.Tables)
		return a
	}
	local, err := servers.StartDynamoDBLocal(tb.TempDir())
	if err != nil {
		tb.Fatalf("start DynamoDB Local: %v", err)
	}
	tb.Cleanup(func() {
		if err := local.Close(); err != nil {
			tb.Errorf("end DynamoDB Local: %v", err)
		}
	})
	tb.Logf("the tables are those of DynamoDB Local")
	return lead(tb, &AWS{Moto: a.Moto, Tables: "DynamoDB Local", tables: local.Addr})
}

// lead makes the configuration of clients.
func lead(tb testing.TB, a *AWS) *AWS {
	conns := &http.Transport{MaxIdleConnsPerHost: 100}
	tb.Cleanup(conns.CloseIdleConnections)
	a.Config = aws.Config{
		Region:       region,
		BaseEndpoint: aws.String("http://" + a.Addr),
		HTTPClient:   &byService{&http.Client{Transport: conns}, a.tables},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: dummy, SecretAccessKey: dummy}, nil
		}),
	}
	return a
}

// byService sends what is for DynamoDB and its streams where the tables are. An endpoint of
// a service's own would depend on the environment of the tests.
type byService struct {
	*http.Client
	tables string
}

// Do sends a request.
func (b *byService) Do(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB") {
		r.URL.Host = b.tables
	}
	return b.Client.Do(r)
}

// Environment returns NAME=value that lead a process to the emulator, whatever this
// machine has of AWS.
func (a *AWS) Environment() []string {
	return []string{
		"AWS_ENDPOINT_URL=http://" + a.Addr,
		"AWS_ENDPOINT_URL_DYNAMODB=http://" + a.tables, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS=http://" + a.tables,
		"AWS_REGION=" + region,
		"AWS_ACCESS_KEY_ID=" + dummy, "AWS_SECRET_ACCESS_KEY=" + dummy, "AWS_SESSION_TOKEN=", "AWS_PROFILE=",
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull, "AWS_EC2_METADATA_DISABLED=true",
	}
}

// Topic makes an SNS topic and returns its ARN.
func (a *AWS) Topic(tb testing.TB, name string) string {
	tb.Helper()
	made, err := sns.NewFromConfig(a.Config).CreateTopic(tb.Context(), &sns.CreateTopicInput{Name: &name})
	if err != nil {
		tb.Fatal(err)
	}
	return *made.TopicArn
}

// Queues returns the URLs of all queues that there are.
func (a *AWS) Queues(tb testing.TB) []string {
	tb.Helper()
	out, err := sqs.NewFromConfig(a.Config).ListQueues(tb.Context(), &sqs.ListQueuesInput{})
	if err != nil {
		tb.Fatal(err)
	}
	return out.QueueUrls
}

// Subscriptions returns the ARNs of all subscriptions to topics that there are.
func (a *AWS) Subscriptions(tb testing.TB) (arns []string) {
	tb.Helper()
	out, err := sns.NewFromConfig(a.Config).ListSubscriptions(tb.Context(), &sns.ListSubscriptionsInput{})
	if err != nil {
		tb.Fatal(err)
	}
	for _, s := range out.Subscriptions {
		arns = append(arns, *s.SubscriptionArn)
	}
	return arns
}
