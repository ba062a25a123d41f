package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
)

// api answers a request for an operation. The parameter http=1 makes a denial a status of 429.
func (s *Server) api(ctx *fasthttp.RequestCtx, t *turn, name string, query []byte) {
	o := operationOf(name)
	if o == nil {
		s.problem(ctx, fasthttp.StatusNotFound, noOperation(name))
		return
	}
	u, ok := s.user(ctx, apiCredentials)
	if !ok {
		return
	}
	if u == nil { // nothing of the request is read
		s.errReply(ctx, "NOAUTH Authentication required: send the header Authorization, Basic with a name and a password or Bearer with a token.")
		return
	}
	query, asStatus := withoutStatus(query)
	requests, list, code, err := s.requests(ctx, t, o, query)
	if err != nil {
		detail := err.Error()
		if mistake := statusMistake(o, query); mistake != "" && code == fasthttp.StatusBadRequest {
			detail = mistake
		}
		s.problem(ctx, code, detail)
		return
	}
	switch o.result {
	case resultDecision:
		s.decide(ctx, u, o, requests, list, asStatus)
	default:
		s.call(ctx, u, o, &requests[0])
	}
}

// noOperation returns what is wrong with the name of an operation that does not exist.
func noOperation(name string) string {
	command := "RL." + strings.ToUpper(strings.TrimPrefix(strings.ToLower(limit.Shorten(name)), "rl."))
	usage := commands.UsageOf(command)
	near := limit.DidYouMean(name, strings.Split(operationNames(), ", "))
	switch of := operationOf(strings.ToLower(command[len("RL."):])); {
	case of != nil:
		return fmt.Sprintf("there is no operation %q; did you mean %s?", limit.Shorten(name), of.name)
	case usage != "":
		return fmt.Sprintf("there is no operation %q; %s is not asked over HTTP: redis-cli %s", limit.Shorten(name), command, usage)
	case near != "":
		return fmt.Sprintf("there is no operation %q%s", limit.Shorten(name), near)
	}
	return fmt.Sprintf("there is no operation %q; the operations are %s", limit.Shorten(name), operationNames())
}

// statusName is the parameter that makes a denial a status.
const statusName = "http"

// withoutStatus removes http=1 from a query.
func withoutStatus(query []byte) (rest []byte, found bool) {
	for part := range bytes.SplitSeq(query, []byte("&")) {
		if string(part) == "http=1" {
			found = true
			continue
		}
		if len(rest) > 0 {
			rest = append(rest, '&')
		}
		rest = append(rest, part...)
	}
	return rest, found
}

// statusMistake returns a sentence about a parameter of the rest of a query that is meant to be http=1, or "".
func statusMistake(o *operation, rest []byte) string {
	if len(rest) == 0 {
		return ""
	}
	for part := range bytes.SplitSeq(rest, []byte("&")) {
		name, value, _ := bytes.Cut(part, []byte("="))
		lower := strings.ToLower(string(name))
		switch {
		case string(name) == statusName:
			return fmt.Sprintf("http is 1 or left out, and not %q: with http=1 a denial has the status 429", limit.Shorten(string(value)))
		case limit.Nearest(lower, append(namesOf(o.fields), statusName)) == statusName:
			return fmt.Sprintf("there is no parameter %q; did you mean http?", limit.Shorten(string(name)))
		}
	}
	return ""
}

// requests reads the requests of a call, or returns a status and a sentence for the client.
func (s *Server) requests(ctx *fasthttp.RequestCtx, t *turn, o *operation, query []byte) (all []request, list bool, code int, err error) {
	switch {
	case ctx.IsPost() && len(query) > 0:
		return nil, false, fasthttp.StatusBadRequest, fmt.Errorf("the fields of a POST stand in its body: %s", o.example)
	case ctx.IsPost():
		t.pause()
		body, code, err := readBody(ctx)
		if !t.resume() {
			ctx.SetConnectionClose()
			return nil, false, fasthttp.StatusServiceUnavailable, errAhead
		}
		if err != nil {
			return nil, false, code, err
		}
		t.takeLarge(len(body))
		all, list, err = o.decode(body)
		return all, list, fasthttp.StatusBadRequest, err
	case o.get && (ctx.IsGet() || ctx.IsHead()):
		r, err := o.decodeQuery(query)
		return []request{r}, false, fasthttp.StatusBadRequest, err
	}
	allow := "POST"
	if o.get {
		allow = "GET, POST"
	}
	ctx.Response.Header.Set("Allow", allow)
	return nil, false, fasthttp.StatusMethodNotAllowed, fmt.Errorf("%s takes %s: curl -d '%s' http://HOST:PORT/v1/%s", o.name, allow, o.example, o.name)
}

// readBody reads the body of a request, which has maxBodyBytes at most.
func readBody(ctx *fasthttp.RequestCtx) (body []byte, code int, err error) {
	if stream := ctx.RequestBodyStream(); stream != nil && ctx.Request.Header.ContentLength() <= maxBodyBytes {
		body, err = io.ReadAll(io.LimitReader(stream, maxBodyBytes+1))
	}
	switch {
	case err != nil && !isTimeout(err) && !errors.Is(err, io.ErrUnexpectedEOF):
		ctx.SetConnectionClose()
		return nil, fasthttp.StatusBadRequest, errors.New("the chunks of the body are not those of HTTP/1.1")
	case err != nil:
		ctx.SetConnectionClose()
		return nil, fasthttp.StatusRequestTimeout, fmt.Errorf("the body was not complete within %s", readTimeout)
	case ctx.Request.Header.ContentLength() > maxBodyBytes || len(body) > maxBodyBytes:
		ctx.SetConnectionClose()
		return nil, fasthttp.StatusRequestEntityTooLarge, fmt.Errorf("a body has %d bytes at most", maxBodyBytes)
	}
	return body, 0, nil
}

// decide answers with decisions: an object, or a list of them.
func (s *Server) decide(ctx *fasthttp.RequestCtx, u *users.User, o *operation, requests []request, list, asStatus bool) {
	var answers []commands.Answer
	if o.name == "peek" {
		answers = []commands.Answer{s.opts.Handler.Peek(u, o.args(&requests[0]))}
	} else {
		cmds := make([][][]byte, len(requests))
		for i := range requests {
			s.addTrace(ctx, &requests[i])
			cmds[i] = o.args(&requests[i])
		}
		answers = s.opts.Handler.Decide(u, peerOf(ctx), cmds, make([]commands.Answer, 0, len(cmds)))
	}
	if list {
		s.write(ctx, fasthttp.StatusOK, jsonType, appendList(nil, answers))
		return
	}
	a := &answers[0]
	if a.Error != "" {
		s.errReply(ctx, a.Error)
		return
	}
	s.fields(ctx, &a.Decision)
	code := fasthttp.StatusOK
	if asStatus && !a.Allowed {
		code = fasthttp.StatusTooManyRequests
		ctx.Response.Header.Set("Cache-Control", "no-store")
	}
	s.write(ctx, code, jsonType, append(appendDecision(nil, a), '\n'))
}

// appendList appends a list of decisions. A request that cannot be decided has an error instead.
func appendList(b []byte, answers []commands.Answer) []byte {
	b = append(b, '[')
	for i := range answers {
		if i > 0 {
			b = append(b, ',')
		}
		if a := &answers[i]; a.Error == "" {
			b = appendDecision(b, a)
		} else {
			_, text, _ := strings.Cut(a.Error, " ")
			b = append(appendText(append(b, `{"error":`...), withAPINames(text)), '}')
		}
	}
	return append(b, "]\n"...)
}

// call answers with the reply of a command.
func (s *Server) call(ctx *fasthttp.RequestCtx, u *users.User, o *operation, r *request) {
	reply := s.opts.Handler.Call(s.ctx, u, o.args(r))
	line, _, _ := bytes.Cut(reply, []byte("\r\n"))
	if len(line) > 0 && line[0] == '-' {
		s.errReply(ctx, string(line[1:]))
		return
	}
	if o.result == resultSettled {
		s.write(ctx, fasthttp.StatusOK, jsonType, []byte(`{"result":"`+settledWords[string(line)]+"\"}\n"))
		return
	}
	body, ok := commands.AppendJSON(nil, reply)
	if !ok {
		s.problem(ctx, fasthttp.StatusInternalServerError, "the reply of "+o.name+" cannot be written as JSON")
		return
	}
	s.write(ctx, fasthttp.StatusOK, jsonType, append(body, '\n'))
}
