package httpapi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// Words of commands.
var checkWord, oneWord = []byte("rl.check"), []byte("1")

// anonymous is the tenant of requests that name none.
const anonymous = "anonymous"

// hashedPrefix precedes the hash of a secret that names a tenant.
const hashedPrefix = "key-"

// check answers a gateway: 200 or 429. Below is the path behind /check, which is that of the
// gateway's client; the query of /check itself is the operator's, whose mistakes are answers. What a
// client sends is never a mistake: a name that cannot be used counts as missing.
func (s *Server) check(ctx *fasthttp.RequestCtx, below, query []byte) {
	u, ok := s.user(ctx, gatewayCredentials)
	if !ok {
		s.warnings.refused("its " + gatewayCredentials + " is refused")
		return
	}
	if u == nil {
		const missing = gatewayCredentials + " is missing"
		s.warnings.refused(missing)
		s.problem(ctx, fasthttp.StatusUnauthorized, missing+": the gateway sends Basic and name:password in base64, or Bearer and a token, in it")
		return
	}
	q, err := parseParameters(query)
	if err != "" {
		s.problem(ctx, fasthttp.StatusBadRequest, err)
		return
	}
	var room [1]commands.Answer
	args := s.checkArgs(ctx, u, below, &q)
	answers := s.opts.Handler.Decide(u, peerOf(ctx), [][][]byte{args}, room[:0])
	a := &answers[0]
	if a.Error != "" {
		s.warnings.refused(a.Error)
		s.errReply(ctx, a.Error)
		return
	}
	s.fields(ctx, &a.Decision)
	if a.Allowed && len(below) > 0 && string(args[opIndex-1]) == anonymous && isCheckInJSON(ctx) {
		s.warnings.misdirected()
		s.write(ctx, fasthttp.StatusOK, "text/plain; charset=utf-8", fmt.Appendf(nil, misdirected, args[opIndex-1], args[opIndex]))
		return
	}
	switch {
	case a.Allowed && string(args[opIndex]) == noOp:
		s.write(ctx, fasthttp.StatusOK, "text/plain; charset=utf-8", fmt.Appendf(nil, checkWithoutOp, args[opIndex-1]))
		return
	case a.Allowed:
		s.count(fasthttp.StatusOK)
		return
	}
	s.deny(ctx, &a.Decision, q.deny)
}

const (
	// opIndex is the index of the op among the words of RL.CHECK.
	opIndex = 2
	// noOp stands for an op that a request does not have.
	noOp = "-"
	// checkWithoutOp is the body of the answer to a request without an op, for people: gateways read the status.
	checkWithoutOp = "admitted: tenant %s, no op. A gateway sends a path, and a check in JSON goes to /v1/check.\n"
)

// misdirected is the body of the answer to a request with a check in JSON as its body, for people.
const misdirected = "admitted: tenant %s, op %s. The path of a gateway's client stands behind /check; a check in JSON goes to /v1/check.\n"

// maxLooked bounds the bytes of a body that isCheckInJSON looks at. They have arrived with the headers: the library reads 8 KiB of a body
// of known length before the request is answered.
const maxLooked = 4096

// isCheckInJSON reports whether the body of a request is most likely a check for /v1/check. It waits for no bytes of the body.
func isCheckInJSON(ctx *fasthttp.RequestCtx) bool {
	stream := ctx.RequestBodyStream()
	if stream == nil || ctx.Request.Header.ContentLength() <= 0 {
		return false
	}
	body := make([]byte, min(ctx.Request.Header.ContentLength(), maxLooked))
	if _, err := io.ReadFull(stream, body); err != nil {
		return false
	}
	return bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) && bytes.Contains(body, []byte(`"tenant"`))
}

// parameters are the query of /check.
type parameters struct {
	tenant, op string
	ip         *netip.Addr // nil without the parameter; not valid for a client without an address
	cost       int64       // 0 without the parameter
	dims       [][2]string
	deny       int // the status of denials
}

// parseParameters reads the query of /check. The text is a sentence for the operator, or empty.
func parseParameters(query []byte) (q parameters, mistake string) {
	q.deny = fasthttp.StatusTooManyRequests
	if len(query) == 0 {
		return q, ""
	}
	values, err := url.ParseQuery(string(query))
	if err != nil {
		return q, "the query cannot be read: " + limit.Shorten(err.Error())
	}
	for name, all := range values {
		value := all[0]
		dim, isDim := strings.CutPrefix(name, "dim.")
		switch {
		case len(all) > 1: // the second may be one that a client has added
			return q, strconv.Quote(limit.Shorten(name)) + " is there twice"
		case name == "tenant":
			q.tenant = value
		case name == "op":
			q.op = value
		case name == "ip" || name == "cost":
			if mistake := q.number(name, value); mistake != "" {
				return q, mistake
			}
		case name == "deny" && value == "403":
			q.deny = fasthttp.StatusForbidden
		case name == "deny" && value == "429":
		case name == "deny":
			return q, "deny is 403 or 429"
		case isDim && limit.CheckName(dim) == nil && !limit.ReservedDim(dim) && !strings.Contains(dim, "="):
			q.dims = append(q.dims, [2]string{dim, value})
		default:
			return q, noParameter(name)
		}
	}
	return q, ""
}

// noParameter returns the sentence about a parameter that /check does not have.
func noParameter(name string) string {
	text := "there is no parameter " + strconv.Quote(limit.Shorten(name))
	return text + cmp.Or(limit.DidYouMean(name, []string{"tenant", "op", "ip", "cost", "deny"}), ": they are tenant, op, ip, cost, dim.NAME and deny")
}

// number reads the parameters ip and cost, if they are not empty.
func (q *parameters) number(name, value string) (mistake string) {
	switch {
	case value == "":
	case name == "cost":
		if q.cost = parseCost(value); q.cost == 0 {
			return "cost is " + strconv.Quote(limit.Shorten(value)) + ", which is no number of units: write 1 or more"
		}
	default:
		addr := parseEntry(value)
		if !addr.IsValid() && !slices.Contains(noAddress[:], value) {
			return "ip is " + strconv.Quote(limit.Shorten(value)) + ", which is no address: write for example 203.0.113.7, or - for none"
		}
		q.ip = &addr
	}
	return ""
}

// noAddress are values of the parameter ip for a client without an address: nginx says so of one that
// connects by a Unix socket.
var noAddress = [...]string{"-", "unix:"}

// checkArgs returns the words of RL.CHECK for a request of a gateway.
func (s *Server) checkArgs(ctx *fasthttp.RequestCtx, u *users.User, below []byte, q *parameters) [][]byte {
	op := s.opOf(ctx, below, q)
	args := append(make([][]byte, 0, 18), checkWord, s.tenant(ctx, u, q), op, s.address(ctx, q), s.cost(ctx, q))
	dims := 0
	add := func(name, value string) {
		value = limit.FitValue(value)
		if dims < limit.MaxDims && limit.CheckName(value) == nil {
			args = append(args, dimWord, []byte(name), []byte(value))
			dims++
		}
	}
	for _, d := range q.dims {
		add(d[0], d[1])
	}
	for _, d := range s.opts.DimHeaders {
		if !q.has(d.Dim) {
			add(d.Dim, string(single(&ctx.Request.Header, d.Header)))
		}
	}
	// Limits of other limiters are often by path alone.
	method, path, _ := bytes.Cut(op, []byte(" "))
	for i, value := range [2][]byte{method, path} {
		if name := opDims[i]; bytes.HasPrefix(path, []byte("/")) && !q.has(name) && !s.hasDimHeader(name) && dims < limit.MaxDims {
			args = append(args, dimWord, []byte(name), cutTo(value, limit.MaxNameBytes))
			dims++
		}
	}
	if name := s.opts.TraceHeader; name != "" && !q.has(name) && !s.hasDimHeader(name) { // last: it takes no other's room
		add(name, string(single(&ctx.Request.Header, name)))
	}
	return args
}

// hasDimHeader reports whether a header has a dimension.
func (s *Server) hasDimHeader(dim string) bool {
	return slices.ContainsFunc(s.opts.DimHeaders, func(d DimHeader) bool { return d.Dim == dim })
}

// has reports whether the query has a dimension.
func (q *parameters) has(dim string) bool {
	return slices.ContainsFunc(q.dims, func(d [2]string) bool { return d[0] == dim })
}

// tenant returns the tenant: that of the header, that of the query, that of the gateway's user if
// it has only one, or anonymous.
func (s *Server) tenant(ctx *fasthttp.RequestCtx, u *users.User, q *parameters) []byte {
	if s.opts.TenantHeader != "" {
		if name := s.tenantOf(single(&ctx.Request.Header, s.opts.TenantHeader)); name != "" {
			return []byte(name)
		}
	}
	switch {
	case isName(q.tenant):
		return []byte(q.tenant)
	case u != nil && u.Tenant() != "":
		return []byte(u.Tenant())
	}
	return []byte(anonymous)
}

// tenantOf returns the tenant that the value of the tenant's header names, or "". A bearer token
// names the one of its claim if it can be checked. Other secrets are hashed: the name of a tenant
// stands in keys of Redis, in replies and in the limits.
func (s *Server) tenantOf(value []byte) string {
	if len(value) == 0 {
		return ""
	}
	if !s.tenantHashed {
		if name := string(value); isName(name) {
			return name
		}
		return ""
	}
	ofAuthorization := strings.EqualFold(s.opts.TenantHeader, "Authorization")
	if ofAuthorization {
		value = normalized(value)
	}
	if s.opts.Tokens != nil && ofAuthorization {
		_, token, ok := credentials(string(value))
		if !ok {
			return ""
		}
		tenant, _, err := s.opts.Tokens.Verify(token)
		if err != nil {
			return ""
		}
		return tenant
	}
	sum := sha256.Sum256(value)
	return hashedPrefix + hex.EncodeToString(sum[:16])
}

// isName reports whether a text names a tenant. A dash stands for none.
func isName(text string) bool { return text != "" && text != "-" && limit.CheckName(text) == nil }

// normalized returns the value of an Authorization header with its scheme in lower case and single
// blanks: servers read other forms of it as the same.
func normalized(value []byte) []byte {
	words := bytes.Fields(value)
	if len(words) > 0 {
		words[0] = bytes.ToLower(words[0])
	}
	return bytes.Join(words, []byte(" "))
}

// opOf returns the op: that of the query, or that of the gateway's headers.
func (s *Server) opOf(ctx *fasthttp.RequestCtx, below []byte, q *parameters) []byte {
	if q.op != "" && limit.CheckOp(q.op) == nil {
		return []byte(q.op)
	}
	op, named := s.op(ctx, below)
	if !named {
		s.warnings.noPath(s.opts.Gateway)
		return []byte(noOp)
	}
	return op
}

// opDims are the dimensions of the parts of an op that is METHOD PATH.
var opDims = [2]string{"method", "path"}

// address returns the address of the client, or - for none.
func (s *Server) address(ctx *fasthttp.RequestCtx, q *parameters) []byte {
	var addr netip.Addr
	if q.ip != nil {
		addr = *q.ip
	} else {
		addr = s.client(ctx, peerOf(ctx))
	}
	if !addr.IsValid() {
		return []byte("-")
	}
	return addr.AppendTo(nil)
}

// cost returns the cost: that of the header, that of the query, or 1.
func (s *Server) cost(ctx *fasthttp.RequestCtx, q *parameters) []byte {
	n := max(q.cost, 1)
	if s.opts.CostHeader != "" {
		if header := single(&ctx.Request.Header, s.opts.CostHeader); len(header) > 0 {
			if n = parseCost(string(header)); n == 0 {
				s.warnings.cost()
				return oneWord
			}
		}
	}
	return strconv.AppendInt(nil, n, 10)
}

// parseCost parses a cost. One above all bounds is the largest. Zero is no cost.
func parseCost(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return min(max(n, 0), bucket.MaxCost)
}
