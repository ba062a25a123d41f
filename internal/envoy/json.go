package envoy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// maxJSON bounds a request as JSON, which takes fifty times of it in memory.
const maxJSON = 64 << 10

// ExampleJSON is a request as JSON.
const ExampleJSON = `{"domain":"shop","descriptors":[{"entries":[{"key":"tenant","value":"acme"}]}]}`

// likeExample ends the error of a request that differs from it.
const likeExample = "; write for example " + ExampleJSON

// JSON answers requests as JSON, as the gRPC service does: 200 for an admitted request, 429 for a denied
// one, 400 for one that cannot be answered, 403 for one of a web page, and 503 for one above the bound on descriptors at once.
func (s *Service) JSON(w http.ResponseWriter, r *http.Request) {
	if isOfBrowser(r.Header) {
		http.Error(w, "requests of browsers are refused: a page that someone visits could spend quotas", http.StatusForbidden)
		return
	}
	var req rls.RateLimitRequest
	if err := readJSON(w, r, &req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	resp, err := s.ShouldRateLimit(r.Context(), &req)
	if err != nil {
		refuse(w, err)
		return
	}
	reply, err := protojson.Marshal(resp)
	if err != nil {
		http.Error(w, "write response: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if resp.GetOverallCode() == rls.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	var compact bytes.Buffer // protojson puts spaces into each build's replies elsewhere
	_ = json.Compact(&compact, reply)
	_, _ = w.Write(compact.Bytes())
}

// isOfBrowser reports whether a web page made a browser send a request. Browsers
// tell, see https://fetch.spec.whatwg.org/#origin-header and https://www.w3.org/TR/fetch-metadata/.
func isOfBrowser(h http.Header) bool {
	site := h.Get("Sec-Fetch-Site")
	return h.Get("Origin") != "" || site != "" && site != "none"
}

// refuse answers a request that is not decided.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusBadRequest
	switch status.Code(err) {
	case codes.ResourceExhausted:
		code = http.StatusServiceUnavailable
	case codes.Internal:
		code = http.StatusInternalServerError
	}
	text := status.Convert(err).Message()
	if errors.Is(err, errDomain) || errors.Is(err, errDescriptors) {
		text += likeExample
	}
	http.Error(w, text, code)
}

// readJSON reads the request in the body of an HTTP request.
func readJSON(w http.ResponseWriter, r *http.Request, to *rls.RateLimitRequest) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxJSON))
	if err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	if err := protojson.Unmarshal(body, to); err != nil {
		// The spaces of protojson's errors differ between builds.
		reason := strings.TrimSpace(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto:"))
		return fmt.Errorf("parse request: %s%s", reason, likeExample)
	}
	return nil
}
