package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/valyala/fasthttp"
)

const (
	checkPath   = "/check"
	apiPath     = "/v1/"
	openAPIPath = "/v1/openapi.json"
)

// serve answers one request. The path is compared as it came: nothing is decoded, so that no two
// programs can disagree about it.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	t, ok := s.takeTurn(ctx)
	if !ok {
		ctx.SetConnectionClose()
		s.problem(ctx, fasthttp.StatusServiceUnavailable, errAhead.Error())
		return
	}
	defer t.end()
	defer s.recoverPanic(ctx)
	path, query, _ := bytes.Cut(ctx.Request.Header.RequestURI(), []byte("?"))
	switch {
	case string(path) == checkPath:
		s.check(ctx, nil, query)
	case bytes.HasPrefix(path, []byte(checkPath+"/")):
		s.check(ctx, path[len(checkPath):], nil)
	case isOfBrowser(ctx):
		s.problem(ctx, fasthttp.StatusForbidden, "requests of browsers are refused: a page that someone visits could spend quotas")
	case string(path) == openAPIPath:
		s.openAPI(ctx)
	case bytes.HasPrefix(path, []byte(apiPath)):
		s.api(ctx, &t, string(path[len(apiPath):]), query)
	default:
		s.problem(ctx, fasthttp.StatusNotFound, "there is nothing here: services post to /v1/check, gateways ask /check, "+openAPIPath+" describes the API, and health and metrics are at the address of --admin")
	}
}

// errAhead is the error for a request that does not wait for its turn.
var errAhead = fmt.Errorf("%d other requests wait that were sent ahead of an answer: wait for each answer", maxAhead)

// isCheck reports whether a request is one for /check.
func isCheck(ctx *fasthttp.RequestCtx) bool {
	return bytes.HasPrefix(ctx.Request.Header.RequestURI(), []byte(checkPath))
}

// recoverPanic answers a request whose handling has panicked: the library would end the program.
func (s *Server) recoverPanic(ctx *fasthttp.RequestCtx) {
	if value := recover(); value != nil {
		cause := fmt.Sprintf("%T", value) // other values than those of the runtime may contain client data
		if fault, ok := value.(runtime.Error); ok {
			cause = fault.Error()
		}
		s.opts.Log.Error("a request over HTTP panicked", "cause", cause, "stack", string(debug.Stack()))
		ctx.Response.Reset()
		ctx.SetConnectionClose()
		s.problem(ctx, fasthttp.StatusInternalServerError, "this request has met a fault of limitgate, which its log has")
	}
}

// isOfBrowser reports whether a page of another site made a browser send the request. Browsers
// tell, see https://fetch.spec.whatwg.org/#origin-header and https://www.w3.org/TR/fetch-metadata/.
func isOfBrowser(ctx *fasthttp.RequestCtx) bool {
	site := string(ctx.Request.Header.Peek("Sec-Fetch-Site"))
	return len(ctx.Request.Header.Peek("Origin")) > 0 || site != "" && site != "none"
}

// refuse answers a request that is not HTTP, too large or too slow. The connection ends.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	code, text := fasthttp.StatusBadRequest, "the request is not HTTP/1.1"
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &small):
		code, text = fasthttp.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("the headers have more than %d bytes", maxHeaderBytes)
	case isTimeout(err):
		code, text = fasthttp.StatusRequestTimeout, fmt.Sprintf("the request was not complete within %s", readTimeout)
	}
	ctx.Response.Reset()
	s.problem(ctx, code, text)
}

// operationOf returns the operation of a path below /v1/, or nil.
func operationOf(name string) *operation {
	for i := range operations {
		if operations[i].name == name {
			return &operations[i]
		}
	}
	return nil
}

// operationNames returns the names of all operations, for errors.
func operationNames() string {
	var names []string
	for i := range operations {
		names = append(names, operations[i].name)
	}
	return strings.Join(names, ", ")
}
