package commands

import (
	"github.com/limitgate/limitgate/internal/bypass"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
)

const noBypass = "may not use bypass tokens"

// setToken parses BYPASS token. It does not use the token: a pipeline is parsed again if it does
// not consist of checks alone. An empty one is none, as of a gateway whose request has no header.
func (s *Session) setToken(rest [][]byte, req *limit.Request) (errReply string) {
	switch {
	case len(rest) < 2:
		return "ERR syntax error: BYPASS needs a token behind it"
	case req.BypassToken != "":
		return "ERR invalid option 'BYPASS': it is there twice"
	case !s.user.May(users.Bypass):
		return noPermission("this user ", noBypass)
	case s.h.opts.Bypass == nil:
		return "ERR invalid option 'BYPASS': the proxy has no keys of bypass tokens, which --bypass-jwks names"
	}
	req.BypassToken = alias(rest[1])
	s.tokens = s.tokens || len(rest[1]) > 0
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
func (c *command) refusesBypass(h *Handler, u *users.User, args [][]byte) bool {
	if c.full != checkName {
		return false
	}
	s := Session{h: h, scratch: new(scratch), user: u}
	return s.parseCheck(args, &limit.Request{}, &options{takes: checkOptions}) == noPermission("this user ", noBypass)
}
