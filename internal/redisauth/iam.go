package redisauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	// tokenLife is how long a token can be used to log in; ElastiCache refuses requests
	// for longer ones. tokenCached is how long this process uses one.
	tokenLife   = 15 * time.Minute
	tokenCached = 10 * time.Minute
	// emptyHash is the SHA-256 of an empty body.
	emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// IAMOptions name a user of a cache.
type IAMOptions struct {
	// Cache is the name of the replication group, serverless cache or MemoryDB cluster, and
	// not a host.
	Cache                string
	Serverless, MemoryDB bool
	// User is the id of the user in AWS, which is also its name.
	User string
}

// IAM supplies tokens of AWS IAM as passwords. It is safe for concurrent use. See
// https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html.
type IAM struct {
	credentials aws.CredentialsProvider
	region      string
	options     IAMOptions
	now         func() time.Time

	mu    sync.Mutex // guards the fields below
	token string
	made  time.Time
}

// NewIAM returns the credentials of a user of a cache.
func NewIAM(config aws.Config, o IAMOptions) (*IAM, error) {
	switch {
	case config.Region == "":
		return nil, errors.New("get a token of IAM: no region is known: set AWS_REGION")
	case o.User == "":
		return nil, errors.New("get a token of IAM: a user is needed: set --redis-user")
	}
	o.Cache, o.User = strings.ToLower(o.Cache), strings.ToLower(o.User)
	return &IAM{credentials: config.Credentials, region: config.Region, options: o, now: time.Now}, nil
}

// Credentials returns the user and a token.
func (i *IAM) Credentials(ctx context.Context) (user, password string, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.token == "" || i.now().Sub(i.made) > tokenCached {
		token, err := i.sign(ctx)
		if err != nil {
			return "", "", err
		}
		i.token, i.made = token, i.now()
	}
	return i.options.User, i.token, nil
}

// Refused drops the token, and reports whether a new one may be accepted: the AWS credentials
// behind an old one may have expired.
func (i *IAM) Refused(_ context.Context, password string) (retry bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.token != password {
		return true
	}
	retry = i.now().Sub(i.made) > time.Second
	i.token = ""
	return retry
}

// sign returns a token: a presigned request without its scheme.
func (i *IAM) sign(ctx context.Context) (string, error) {
	credentials, err := i.credentials.Retrieve(ctx)
	if err != nil {
		return "", fmt.Errorf("get a token of IAM: %w", err)
	}
	service := "elasticache"
	if i.options.MemoryDB {
		service = "memorydb"
	}
	query := url.Values{"Action": {"connect"}, "User": {i.options.User}, "X-Amz-Expires": {strconv.Itoa(int(tokenLife.Seconds()))}}
	if i.options.Serverless {
		query.Set("ResourceType", "ServerlessCache")
	}
	request, err := http.NewRequest(http.MethodGet, "http://"+i.options.Cache+"/?"+query.Encode(), nil)
	if err != nil {
		return "", fmt.Errorf("get a token of IAM: %w", err)
	}
	signed, _, err := v4.NewSigner().PresignHTTP(ctx, credentials, request, emptyHash, service, i.region, i.now().UTC())
	if err != nil {
		return "", fmt.Errorf("get a token of IAM: %w", err)
	}
	return strings.TrimPrefix(signed, "http://"), nil
}
