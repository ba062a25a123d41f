package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// maxEntryBytes bounds an object that is read: two items of DynamoDB's largest size,
// 400 KB, of bytes that JSON encodes with six each.
const maxEntryBytes = 5 << 20

// Bucket is an Archive in Amazon S3. The Object Lock of the bucket protects the
// objects; this package does not set it. Any number of goroutines may use it.
type Bucket struct {
	client *s3.Client
	name   string
}

// NewBucket returns the bucket with a name.
func NewBucket(config aws.Config, name string) *Bucket {
	return &Bucket{s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = config.BaseEndpoint != nil }), name}
}

// Create writes an object that does not exist. It returns false if it exists.
func (b *Bucket) Create(ctx context.Context, name string, body []byte) (created bool, err error) {
	_, err = b.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &b.name, Key: &name, Body: bytes.NewReader(body), IfNoneMatch: aws.String("*"),
		ContentType: aws.String("application/json"), ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	})
	var refused smithy.APIError
	if errors.As(err, &refused) && refused.ErrorCode() == "PreconditionFailed" {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write %s: %w", name, b.plain(err))
	}
	return true, nil
}

// checkTimeout bounds Check: a start does not wait for an S3 that does not answer.
const checkTimeout = 5 * time.Second

// Check returns an error if the bucket does not exist. It returns nil if S3 does not answer or denies access:
// HeadBucket and PutObject have different permissions, and the writer tries again.
func (b *Bucket) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	_, err := b.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &b.name})
	if isNoBucket(err) {
		return fmt.Errorf("look for the bucket of the audit: %w", b.plain(err))
	}
	return nil
}

// noBucket are the codes of a bucket that does not exist; HeadBucket has one of its own.
var noBucket = []string{"NoSuchBucket", "NotFound"}

// isNoBucket reports whether S3 has no such bucket.
func isNoBucket(err error) bool {
	var refused smithy.APIError
	return errors.As(err, &refused) && slices.Contains(noBucket, refused.ErrorCode())
}

// plain replaces an error of S3 by a clearer one, if there is one.
func (b *Bucket) plain(err error) error {
	if !isNoBucket(err) {
		return err
	}
	o := b.client.Options()
	at, check := "", "AWS_REGION and AWS_PROFILE"
	if o.BaseEndpoint != nil {
		check = "AWS_REGION, AWS_PROFILE and AWS_ENDPOINT_URL"
		if u, err := url.Parse(*o.BaseEndpoint); err == nil {
			at = " at " + u.Scheme + "://" + u.Host
		}
	}
	return fmt.Errorf("there is no bucket %q in the region %s%s: check its name, %s", b.name, o.Region, at, check)
}

// listError returns the error of a list of the objects that begin with prefix.
func (b *Bucket) listError(prefix string, err error) error {
	key, _ := url.PathUnescape(prefix)
	return fmt.Errorf("list audit of %s: %w", strings.TrimSuffix(key, "/"), b.plain(err))
}

// Read returns the objects whose names begin with prefix.
func (b *Bucket) Read(ctx context.Context, prefix string) (bodies [][]byte, err error) {
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, b.listError(prefix, err)
		}
		for _, object := range page.Contents {
			body, err := b.read(ctx, aws.ToString(object.Key))
			if err != nil {
				return nil, err
			}
			bodies = append(bodies, body)
		}
	}
	return bodies, nil
}

// Items returns the keys of the items, at most a thousand, that begin with prefix and have entries.
func (b *Bucket) Items(ctx context.Context, prefix string) (keys []string, err error) {
	page, err := b.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: aws.String(url.PathEscape(prefix)), Delimiter: aws.String("/")})
	if err != nil {
		return nil, b.listError(prefix, err)
	}
	for _, folder := range page.CommonPrefixes {
		if key, err := url.PathUnescape(strings.TrimSuffix(aws.ToString(folder.Prefix), "/")); err == nil {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func (b *Bucket) read(ctx context.Context, name string) ([]byte, error) {
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &name})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { _ = out.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(out.Body, maxEntryBytes+1))
	if err == nil && len(body) > maxEntryBytes {
		err = fmt.Errorf("it has more than %d bytes", maxEntryBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return body, nil
}
