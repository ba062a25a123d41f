package commands

import (
	"github.com/limitgate/limitgate/internal/bypass"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
)

const noBypass = "may not use bypass tokens"

// setBypass parses BYPASS token.
func setBypass(rest [][]byte, opts *options) (errReply string) {
	switch {
	case len(rest) < 2 || len(rest[1]) == 0:
		return "ERR syntax error: BYPASS needs a token behind it"
	case opts.bypass != nil:
		return "ERR invalid option 'BYPASS': it is there twice"
	}
	opts.bypass = rest[1]
	return ""
}

// setToken adds a token to a request. It does not use it: a pipeline is parsed again if it does not
// consist of checks alone.
func (s *Session) setToken(token []byte, req *limit.Request) (errReply string) {
	switch {
	case s.h.opts.Bypass == nil:
		return "ERR invalid option 'BYPASS': the proxy has no keys of bypass tokens, which --bypass-jwks names"
	case !s.user.May(users.Bypass):
		return noPermission("this user ", noBypass)
	}
	req.BypassToken, s.tokens = alias(token), true
	return ""
}

// useTokens uses the tokens of the batch. A token that does not admit its request changes nothing:
// the limits decide.
func (s *Session) useTokens() {
	if !s.tokens {
		return
	}
	for i := range s.batch.Requests {
		if req := &s.batch.Requests[i]; req.BypassToken != "" {
			req.Bypass = s.h.opts.Bypass.Admit(bypass.Use{
				Token: req.BypassToken, User: s.user.Name, Addr: s.addr, Tenant: req.Tenant, Op: req.Op, Cost: req.Cost,
			})
		}
	}
}

// refusesBypass reports whether a user may not send a command because of its token.
func (c *command) refusesBypass(u *users.User, args [][]byte) bool {
	if c.full != checkName || u.May(users.Bypass) {
		return false
	}
	s, opts := Session{scratch: new(scratch), user: u}, options{takes: optionID | optionHeaders | optionBypass}
	return s.parseCheck(args, &limit.Request{}, &opts) == "" && opts.bypass != nil
}
