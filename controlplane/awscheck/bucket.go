package awscheck

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/limitgate/limitgate/controlplane/audit"
)

// auditPause is the pause between two reads of the bucket.
const auditPause = time.Second

// audited waits until the audit has the probe's change.
func (c *checker) audited(ctx context.Context) (string, error) {
	if err := cmp.Or(needs(c.Bucket != "", "--audit-bucket"), needs(c.probe.Version > 0, "a tenant that was written")); err != nil {
		return "", err
	}
	bucket := audit.NewBucket(c.AWS, c.Bucket)
	for {
		entries, err := audit.History(ctx, bucket, c.probe.Key)
		if err != nil {
			return "", err
		}
		for i := range entries {
			if e := &entries[i]; e.Version == c.probe.Version && e.Actor == probeActor {
				c.written = e.Name()
				return c.written, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("version %d of %s is not there: does a control plane write the audit? %w", c.probe.Version, c.probe.Key, ctx.Err())
		case <-time.After(auditPause):
		}
	}
}

func (c *checker) s3() *s3.Client {
	return s3.NewFromConfig(c.AWS, func(o *s3.Options) { o.UsePathStyle = c.AWS.BaseEndpoint != nil })
}

// overwrite writes the object of the probe's change again, without the condition that
// the audit uses: the bucket's policy must refuse it.
func (c *checker) overwrite(ctx context.Context) (string, error) {
	if err := needs(c.written != "", "a change in the audit"); err != nil {
		return "", err
	}
	_, err := c.s3().PutObject(ctx, &s3.PutObjectInput{Bucket: &c.Bucket, Key: &c.written, Body: bytes.NewReader([]byte("{}"))})
	return refusal(err)
}

// erase deletes the version of that object: Object Lock must refuse it.
func (c *checker) erase(ctx context.Context) (string, error) {
	if err := needs(c.written != "", "a change in the audit"); err != nil {
		return "", err
	}
	head, err := c.s3().HeadObject(ctx, &s3.HeadObjectInput{Bucket: &c.Bucket, Key: &c.written})
	if err != nil {
		return "", fmt.Errorf("read %s: %w", c.written, err)
	}
	if aws.ToString(head.VersionId) == "" {
		return "", errors.New("the bucket has no versions, and so no Object Lock")
	}
	if _, err := c.s3().DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &c.Bucket, Key: &c.written, VersionId: head.VersionId}); err == nil {
		return "", errNotRefused
	} else if _, other := refusal(err); other != nil {
		return "", other
	}
	return fmt.Sprintf("locked until %s, mode %s", aws.ToTime(head.ObjectLockRetainUntilDate).Format(time.RFC3339), head.ObjectLockMode), nil
}

// refusal returns the code of a refusal, or an error if the request succeeded or failed
// otherwise.
func refusal(err error) (detail string, other error) {
	var refused smithy.APIError
	switch {
	case err == nil:
		return "", errNotRefused
	case errors.As(err, &refused) && refused.ErrorCode() == "AccessDenied":
		return refused.ErrorCode(), nil
	}
	return "", err
}
