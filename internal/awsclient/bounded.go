package awsclient

import (
	"errors"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

const (
	// maxAnswer bounds the body of an answer: the SDK needs several times as much memory. DynamoDB has pages of
	// 1 MB of data, and SQS messages of 1 MB in all, which JSON makes some times as large.
	maxAnswer = 8 << 20
	// maxRefusal bounds the body of an error. That of a write on a condition has the item as it is, of 400 KB at
	// most, which JSON makes some times as large.
	maxRefusal = 3 << 20
	// maxText bounds the text of an error in logs and replies.
	maxText = 2000
)

// errLargeAnswer is the error of an answer that no service of AWS gives.
var errLargeAnswer = errors.New("the answer is larger than any of AWS: check AWS_ENDPOINT_URL")

// boundedClient is an HTTP client whose answers are bounded.
type boundedClient struct{ aws.HTTPClient }

// Do sends a request, as an http.Client does.
func (c boundedClient) Do(r *http.Request) (*http.Response, error) {
	resp, err := c.HTTPClient.Do(r)
	if err != nil || resp.Body == nil {
		return resp, err
	}
	most := int64(maxAnswer)
	if resp.StatusCode >= http.StatusBadRequest {
		most = maxRefusal
	}
	resp.Body = &boundedBody{resp.Body, most}
	return resp, nil
}

// boundedBody is a body that fails behind its bound.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		var more [1]byte
		if n, err := b.ReadCloser.Read(more[:]); n == 0 {
			return 0, err
		}
		return 0, errLargeAnswer
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
