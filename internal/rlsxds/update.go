package rlsxds

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// configType is the type of the resources.
	configType = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"
	// updatePause is the least pause after an update. Updates that took longer are followed by a pause of
	// the same length: a server that sends one after the other takes half of a processor at most. It
	// waits meanwhile, for its bytes are not read.
	updatePause = 100 * time.Millisecond
	// refusalPause is the pause after a rejection: some servers answer one at once with the rejected
	// response.
	refusalPause = time.Second
	// maxReason bounds the text of an error that the server or the status receives, in bytes.
	maxReason = 1 << 10
)

// subscribe asks for all resources.
func (c *Client) subscribe(s stream) error {
	if c.options.ForgetVersion {
		c.version = ""
	}
	request := c.request("")
	request.Node = c.node // which the server keeps for the stream
	if err := send(s, request); err != nil {
		return fmt.Errorf("request limits: %w", err)
	}
	return nil
}

// request returns a request for all resources, which answers the response of a nonce.
func (c *Client) request(nonce string) *discovery.DiscoveryRequest {
	return &discovery.DiscoveryRequest{TypeUrl: configType, VersionInfo: c.version, ResponseNonce: nonce}
}

// send sends a request. A stream that has ended is no error here: the next read returns the reason.
func send(s stream, request *discovery.DiscoveryRequest) error {
	if err := s.Send(request); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// take applies a response and accepts it, or rejects it. It returns the pause before the next one. The
// error is that of the stream.
func (c *Client) take(s stream, r *response) (pause time.Duration, err error) {
	began := time.Now()
	changed, refusal := c.apply(r)
	if refusal == nil {
		c.accepted(r, changed)
	} else {
		refusal = shorten(refusal)
		c.rejected(r, refusal)
	}
	answer := c.request(r.nonce)
	if pause = updatePause; refusal != nil {
		pause = refusalPause
		answer.ErrorDetail = status.New(codes.InvalidArgument, refusal.Error()).Proto()
	}
	if err := send(s, answer); err != nil {
		return 0, fmt.Errorf("answer response: %w", err)
	}
	return max(pause, time.Since(began)), nil
}

// apply puts the resources of a response in force, and returns whether that is a change.
func (c *Client) apply(r *response) (changed bool, err error) {
	values, err := r.values()
	if err != nil {
		return false, err
	}
	sum, err := digestOf(values)
	if err != nil {
		return false, err
	}
	if c.inUse == sum {
		return false, nil
	}
	if err := c.options.Apply(values); err != nil {
		return false, err
	}
	c.inUse = sum
	return true, nil
}

// digest identifies a set of resources, in any order.
type digest [sha256.Size]byte

// errTwice is returned for a response that has a resource twice.
var errTwice = errors.New("two resources are equal")

// digestOf returns the digest of resources, which must differ.
func digestOf(values [][]byte) (digest, error) {
	each := make([]digest, len(values))
	for i, value := range values {
		each[i] = sha256.Sum256(value)
	}
	slices.SortFunc(each, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	all := sha256.New()
	for i, one := range each {
		if i > 0 && one == each[i-1] {
			return digest{}, errTwice
		}
		_, _ = all.Write(one[:])
	}
	return digest(all.Sum(nil)), nil
}

// shorten returns an error with at most maxReason bytes of the text of another, as UTF-8.
func shorten(err error) error {
	text := err.Error()
	if len(text) > maxReason {
		end := maxReason - len("...")
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "..."
	}
	return errors.New(strings.ToValidUTF8(text, "?"))
}
