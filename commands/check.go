package commands

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"unsafe"

	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

const (
	checkName = "rl.check"
	// maxBatch is the maximum number of checks of a pipeline that are decided at once.
	// Each batch has a deadline of its own, which the store must be able to meet however
	// deep the pipeline is.
	maxBatch = 64
)

// peekCommand answers RL.PEEK: with the decision of all limits, or with that of one limit alone.
func peekCommand(_ context.Context, s *Session, args [][]byte) {
	if errReply := s.peek(args); errReply != "" {
		s.out.error(errReply)
		return
	}
	s.writeDecisions(&s.batch)
}

// peek makes the decision of RL.PEEK in the batch, which is empty, or returns an error text.
func (s *Session) peek(args [][]byte) (errReply string) {
	s.batch.Requests = append(s.batch.Requests, limit.Request{})
	opts := options{takes: optionLimit}
	if errReply := s.parseCheck(args, &s.batch.Requests[0], &opts); errReply != "" {
		s.batch.Reset()
		return errReply
	}
	s.dialects = append(s.dialects, dialectCheck)
	if opts.limit == "" {
		s.h.opts.Limiter.Peek(&s.batch)
	} else if !s.h.opts.Limiter.PeekLimit(&s.batch, opts.limit) {
		tenant := s.batch.Requests[0].Tenant
		s.dropChecks()
		switch l := s.h.opts.Limiter.Limits().LimitByID(opts.limit); {
		case l == nil:
			return noLimit([]byte(opts.limit), s.h.idsOf(tenant))
		case l.HoldsSlots():
			return "ERR limit '" + quote([]byte(opts.limit)) + "' counts slots, which only RL.ACQUIRE takes: RL.PEEK reads units"
		}
		return "ERR no bucket of limit '" + quote([]byte(opts.limit)) + "' decides about this request: RL.EXPLAIN says why"
	}
	return ""
}

// ParseRequest parses the arguments of RL.CHECK: tenant, op and ip, then a cost and
// dimensions. Errors have the text of the command's errors.
func ParseRequest(words []string) (limit.Request, error) {
	var req limit.Request
	args := [][]byte{[]byte(checkName)}
	for _, w := range words {
		args = append(args, []byte(w))
	}
	switch len(words) {
	case 0:
		return req, errors.New("tenant, op and ip are needed: " + exampleRequest)
	case 1:
		return req, errors.New("the op and ip are missing behind the tenant: " + exampleRequest)
	case 2:
		if _, err := limit.ParseAddr(words[1]); err == nil {
			return req, errors.New(opMissing + words[1] + ": " + exampleRequest)
		}
		return req, errors.New("the ip is missing behind the op, or - for none: " + exampleRequest)
	}
	s := Session{scratch: new(scratch), user: users.Unrestricted} // for the memory of the dimensions
	if errReply := s.parseCheck(args, &req, &options{}); errReply != "" {
		return req, errors.New(strings.TrimPrefix(errReply, "ERR "))
	}
	return req, nil
}

const exampleRequest = `for example acme "GET /x" 203.0.113.7`

// options are the options of a command after tenant, op, ip and cost, except DIM, and the
// given ones that are not part of the request.
type options struct {
	takes   option
	headers bool
	limit   string // of LIMIT, or ""
}

// option is a set of options.
type option uint8

const (
	optionID option = 1 << iota
	optionHeaders
	optionTTL
	optionBypass
	optionLimit

	checkOptions = optionID | optionHeaders | optionBypass
	holdOptions  = optionID | optionHeaders | optionTTL
)

// parseCheck parses `tenant op ip [cost] { DIM name value | ID id | HEADERS | BYPASS token }...`,
// the arguments after the command's name, into req and opts. It returns an error text, or "".
// The request aliases args.
func (s *Session) parseCheck(args [][]byte, req *limit.Request, opts *options) (errReply string) {
	if errReply = s.parseSubject(args, req); errReply != "" {
		return errReply
	}
	rest := args[4:]
	req.Cost = 1
	if len(rest) > 0 && !isOption(rest[0]) {
		if !looksNumeric(rest[0]) && (len(rest) > 1 || bytes.IndexByte(rest[0], '=') > 0) {
			return opts.takes.invalid(rest, false)
		}
		cost, ok := parseCost(rest[0])
		if !ok {
			return costErrReply + opts.takes.costAdvice(rest[0])
		}
		req.Cost, rest = cost, rest[1:]
	}
	return s.parseOptions(rest, req, opts)
}

// looksNumeric distinguishes a cost, valid or not, from an option's name.
func looksNumeric(arg []byte) bool {
	return len(arg) == 0 || arg[0] >= '0' && arg[0] <= '9' || arg[0] == '-' || arg[0] == '+' || arg[0] == '.'
}

func (s *Session) parseSubject(args [][]byte, req *limit.Request) (errReply string) {
	tenant, op, ip := alias(args[1]), alias(args[2]), alias(args[3])
	if tenant == ownTenant {
		if tenant = s.user.Tenant(); tenant == "" {
			return tenantRequired
		}
	}
	if err := limit.CheckName(tenant); err != nil {
		return invalid("tenant", args[1], err)
	}
	req.Tenant = tenant
	if op != "-" {
		if err := limit.CheckOp(op); err != nil {
			return invalid("op", args[2], err) + orNone(args[2])
		}
		req.Op = op
	}
	if ip != "-" {
		addr, err := limit.ParseAddr(ip)
		if err != nil {
			return invalid("ip", args[3], err) + orQuoted(args[1], args[2], args[3])
		}
		req.Addr = addr
	}
	return ""
}

// isOption reports whether an argument is the name of an option.
func isOption(arg []byte) bool {
	return equalFold(arg, "DIM") || equalFold(arg, "ID") || equalFold(arg, "HEADERS") || equalFold(arg, "TTL") || equalFold(arg, "BYPASS") || equalFold(arg, "LIMIT")
}

// parseOptions parses all remaining options.
func (s *Session) parseOptions(rest [][]byte, req *limit.Request, opts *options) (errReply string) {
	begin := len(s.dims)
	for len(rest) > 0 && errReply == "" {
		words := 2
		switch name := rest[0]; {
		case equalFold(name, "DIM") && len(rest) < 3:
			errReply = "ERR syntax error: DIM needs a name and a value behind it" + orBlank(rest[1:])
		case equalFold(name, "DIM"):
			errReply, words = s.addDim(begin, rest[1], rest[2]), 3
		case opts.takes&optionID != 0 && equalFold(name, "ID"):
			errReply = setID(rest, req)
		case opts.takes&optionTTL != 0 && equalFold(name, "TTL"):
			errReply = s.setHoldFor(rest, req)
		case opts.takes&optionBypass != 0 && equalFold(name, "BYPASS"):
			errReply = s.setToken(rest, req)
		case opts.takes&optionLimit != 0 && equalFold(name, "LIMIT"):
			errReply = opts.setLimit(rest)
		case opts.takes&optionHeaders != 0 && equalFold(name, "HEADERS"):
			opts.headers, words = true, 1
		default:
			errReply = opts.takes.invalid(rest, len(s.dims) > begin)
		}
		rest = rest[min(words, len(rest)):]
	}
	if errReply != "" {
		clear(s.dims[begin:])
		s.dims = s.dims[:begin]
		return errReply
	}
	req.Dims = s.dims[begin:len(s.dims):len(s.dims)]
	return ""
}

// setID parses ID id.
func setID(rest [][]byte, req *limit.Request) (errReply string) {
	switch {
	case len(rest) < 2:
		return "ERR syntax error: ID needs an id behind it"
	case req.ID != "":
		return "ERR invalid option 'ID': it is there twice"
	}
	if err := limit.CheckName(alias(rest[1])); err != nil {
		return invalid("id", rest[1], err)
	}
	req.ID = alias(rest[1])
	return ""
}

// setLimit parses LIMIT id.
func (o *options) setLimit(rest [][]byte) (errReply string) {
	switch {
	case len(rest) < 2:
		return "ERR syntax error: LIMIT needs the id of a limit behind it"
	case o.limit != "":
		return "ERR invalid option 'LIMIT': it is there twice"
	}
	if err := limit.CheckName(string(rest[1])); err != nil {
		return invalid("limit", rest[1], err)
	}
	o.limit = string(rest[1])
	return ""
}

// addDim adds a dimension to those of a request, which begin at begin.
func (s *Session) addDim(begin int, nameArg, valueArg []byte) (errReply string) {
	name, value := alias(nameArg), alias(valueArg)
	if err := limit.CheckName(name); err != nil {
		return invalid("dimension name", nameArg, err)
	}
	if before, _, _ := strings.Cut(name, "="); limit.ReservedDim(before) {
		return invalid("dimension name", nameArg, errReservedDim)
	}
	if advice := orBlank([][]byte{nameArg}); advice != "" {
		return invalid("dimension name", nameArg, errEqualsSign) + advice
	}
	if err := limit.CheckName(value); err != nil {
		return invalid("dimension value", valueArg, err)
	}
	for _, d := range s.dims[begin:] {
		if d.Name == name {
			return "ERR invalid dimension '" + quote(nameArg) + "': it is there twice"
		}
	}
	if len(s.dims)-begin == limit.MaxDims {
		return "ERR invalid number of dimensions: at most " + strconv.Itoa(limit.MaxDims)
	}
	s.dims = append(s.dims, limit.Dim{Name: name, Value: value})
	return ""
}

// parseCost parses an integer from 1 to limit.MaxCost, written without sign and leading
// zeros, as Redis does.
func parseCost(arg []byte) (int64, bool) {
	if len(arg) == 0 || len(arg) > 10 || arg[0] == '0' {
		return 0, false
	}
	n := int64(0)
	for _, c := range arg {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, n <= bucket.MaxCost
}

// alias returns b as a string without copying it. The bytes belong to the command and
// outlive the request, which alone references the string.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
