package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// attemptTime bounds one attempt, from its connection to the end of the answer.
	attemptTime = 5 * time.Second
	// maxRetryAfter bounds the pause that an endpoint may ask for: events wait behind it.
	maxRetryAfter = time.Minute
	// maxReply and maxReplyHeader bound the bytes that are read of an answer. The body is read only so
	// that the connection can be used again.
	maxReply       = 4 << 10
	maxReplyHeader = 64 << 10
	// maxIdle and idleTime bound the connections that are kept for the next event. One event is
	// delivered at a time; the second connection is that of an attempt that was given up before it was
	// open.
	maxIdle  = 2
	idleTime = time.Minute
)

// newTransport returns a transport to the endpoint. An attempt that is given up closes a connection of
// HTTP/1.1; one of HTTP/2, which may be dead, would carry the next attempt too.
func newTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, Protocols: protocols, DisableCompression: true,
		DialContext: (&net.Dialer{Timeout: attemptTime}).DialContext, TLSHandshakeTimeout: attemptTime,
		MaxIdleConns: maxIdle, IdleConnTimeout: idleTime, MaxResponseHeaderBytes: maxReplyHeader,
	}
}

// closeIdle closes the connections of a transport, on which there are no requests.
func closeIdle(t http.RoundTripper) { (&http.Client{Transport: t}).CloseIdleConnections() }

// attempt is the result of one.
type attempt struct {
	err   error         // nil if the endpoint took the event
	retry bool          // another attempt may succeed
	after time.Duration // the least pause before it that the endpoint asks for
}

// post sends a message once.
func (s *Sender) post(ctx context.Context, m message) attempt {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(m.body))
	if err != nil {
		return attempt{err: errors.New("no request can be made of the URL")}
	}
	at := s.now().Unix()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", s.agent)
	request.Header.Set("Webhook-Id", m.id)
	request.Header.Set("Webhook-Timestamp", strconv.FormatInt(at, 10))
	request.Header.Set("Webhook-Signature", sign(s.secrets.current(), m.id, at, m.body))
	response, err := s.transport.RoundTrip(request)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return attempt{err: fmt.Errorf("the endpoint did not answer within %v", attemptTime), retry: true}
	case err != nil:
		return attempt{err: err, retry: true}
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusOK { // a connection that has switched protocols ends with no context
		_, _ = io.CopyN(io.Discard, response.Body, maxReply)
	}
	return s.judge(response)
}

// sign returns the signatures of a body, one for each key.
func sign(keys [][]byte, id string, at int64, body []byte) string {
	var all []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		_, _ = fmt.Fprintf(mac, "%s.%d.%s", id, at, body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}

// judge returns the meaning of an answer.
func (s *Sender) judge(r *http.Response) attempt {
	code := r.StatusCode
	if code >= 200 && code <= 299 {
		return attempt{}
	}
	a := attempt{err: fmt.Errorf("the endpoint answered %d %s", code, http.StatusText(code))}
	switch {
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		a.retry, a.after = true, retryAfter(r.Header.Get("Retry-After"), s.now())
	case code >= 300 && code <= 399:
		a.err = fmt.Errorf("%w, and redirects are not followed: set --webhook-url to the URL that takes events", a.err)
	}
	return a
}

// retryAfter returns the pause that a header Retry-After asks for, up to maxRetryAfter. Without a
// well-formed one it is 0.
func retryAfter(text string, now time.Time) time.Duration {
	seconds, err := strconv.ParseUint(text, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
