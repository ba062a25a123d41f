// Package awstest gives tests an AWS of their own: moto_server, an emulator that speaks
// the real protocols. It promises that the emulator and all connections to it are gone
// when the test is over.
//
// The emulator is the file named by LIMITGATE_MOTO, or moto_server from PATH. Without
// one, tests fail with an error that explains how to get it; they are skipped if
// LIMITGATE_WITHOUT_AWS gives the reason. Tests of concurrent writes use DynamoDB Local
// beside it, AWS's own, from the folder named by LIMITGATE_DYNAMODB; without it they
// run on moto, and log that.
//
// Starting an emulator takes a second or two of processor time. Tests that neither end
// it nor pass it to processes share one, see [Share].
package awstest

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/limitgate/limitgate/internal/leftout"
	"github.com/limitgate/limitgate/internal/servers"
)

const region = "eu-central-1"

// AWS is a running emulator. Its methods may be called from any goroutine.
type AWS struct {
	*servers.Moto
	// Config makes clients use the emulator.
	Config aws.Config
	// Tables names the server of the tables, for people.
	Tables string

	tables string // host and port of the server of the tables
	key    string // stands for both parts of an access key
	// account is that of a test which shares moto with others.
	account string
}

// Start starts an emulator, and ends it when the test is over.
func Start(tb testing.TB) *AWS {
	tb.Helper()
	leftout.WithoutAWS(tb)
	moto, err := servers.StartMoto(tb.TempDir())
	if err != nil {
		tb.Fatalf("start an emulator of AWS: %v", err)
	}
	tb.Cleanup(func() {
		if err := moto.Close(); err != nil {
			tb.Errorf("end the emulator of AWS: %v", err)
		}
	})
	return lead(tb, &AWS{Moto: moto, Tables: "moto", tables: moto.Addr, key: "awstest"})
}

// StartAtomic is Start with tables that check a condition and write in one step, as
// DynamoDB does. They are those of DynamoDB Local or, if it is not available, those of
// moto with one request at a time, because moto does it in two steps. The test's log
// names the server.
func StartAtomic(tb testing.TB) *AWS {
	tb.Helper()
	return Start(tb).atomic(tb)
}

// atomic returns the same AWS with such tables.
func (a *AWS) atomic(tb testing.TB) *AWS {
	tb.Helper()
	if os.Getenv(servers.DynamoDBVariable) == "" {
		a = a.Through(tb, &Relay{OneByOne: true})
		a.Tables = "moto, one request at a time"
		tb.Logf("the tables are those of %s", a.Tables)
		return a
	}
	tb.Logf("the tables are those of DynamoDB Local")
	local, _ := sharedTables.use(tb) // starting one takes seconds of processor time
	return lead(tb, &AWS{Moto: a.Moto, Tables: "DynamoDB Local", tables: local.Addr, key: rand.Text(), account: a.account})
}

// lead sets the configuration of clients.
func lead(tb testing.TB, a *AWS) *AWS {
	conns := &http.Transport{MaxIdleConnsPerHost: 100}
	tb.Cleanup(conns.CloseIdleConnections)
	a.Config = aws.Config{
		Region:       region,
		BaseEndpoint: aws.String("http://" + a.Addr),
		HTTPClient:   &byService{&http.Client{Transport: conns}, a.tables, a.account},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: a.key, SecretAccessKey: a.key}, nil
		}),
	}
	return a
}

// byService sends requests for DynamoDB and its streams to the server of the tables. An
// endpoint for each service would depend on the environment of the tests.
type byService struct {
	*http.Client
	tables  string
	account string
}

// Do sends a request.
func (b *byService) Do(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB") {
		r.URL.Host = b.tables
	}
	if b.account != "" {
		r.Header.Set(accountHeader, b.account)
	}
	return b.Client.Do(r)
}

// Endpoint returns environment variables, NAME=value, that make a process use a URL for
// all of AWS, if they follow those of Environment.
func Endpoint(url string) []string { return endpoints(url, url) }

// endpoints returns variables with one URL for tables, and one for all other services.
func endpoints(tables, others string) []string {
	return []string{"AWS_ENDPOINT_URL=" + others, "AWS_ENDPOINT_URL_DYNAMODB=" + tables, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS=" + tables}
}

// TablesAddr returns the host and port of the server of the tables and their streams.
func (a *AWS) TablesAddr() string { return a.tables }

// Environment returns environment variables, NAME=value, that make a process use the
// emulator, whatever AWS configuration this machine has. It panics for a shared
// emulator: a process cannot name its account.
func (a *AWS) Environment() []string {
	if a.account != "" {
		panic("awstest: the environment of a process leads to no account of a shared emulator")
	}
	return append(endpoints("http://"+a.tables, "http://"+a.Addr),
		"AWS_REGION="+region,
		"AWS_ACCESS_KEY_ID="+a.key, "AWS_SECRET_ACCESS_KEY="+a.key, "AWS_SESSION_TOKEN=", "AWS_PROFILE=",
		"AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull, "AWS_EC2_METADATA_DISABLED=true",
	)
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

// Queues returns the URLs of all queues.
func (a *AWS) Queues(tb testing.TB) []string {
	tb.Helper()
	out, err := sqs.NewFromConfig(a.Config).ListQueues(tb.Context(), &sqs.ListQueuesInput{})
	if err != nil {
		tb.Fatal(err)
	}
	return out.QueueUrls
}

// Subscriptions returns the ARNs of all subscriptions to topics.
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
