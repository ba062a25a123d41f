package commands

import (
	"strings"

	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
)

// access is the rights that a command needs.
type access struct {
	groups          users.Groups // one of them; none for commands of every user
	of              scope
	unauthenticated bool // also for clients that have not authenticated
}

// scope is the part of a command that names the tenants it concerns.
type scope uint8

const (
	scopeNone   scope = iota
	scopeTenant       // the first argument, in which - is the tenant of the user
	scopeShared       // the first argument, in which - is all tenants
	scopeKeys         // the keys
	scopeHold         // the id of a reservation or a slot
	scopeAll          // all tenants
)

// accessTable has the commands that need a group. A command that Redis allows
// administrators needs that group and all tenants, unless it is here.
var accessTable = map[string]access{
	checkName:     {groups: users.Check, of: scopeTenant},
	"rl.reserve":  {groups: users.Check, of: scopeTenant},
	"rl.acquire":  {groups: users.Check, of: scopeTenant},
	"rl.commit":   {groups: users.Check, of: scopeHold},
	"rl.cancel":   {groups: users.Check, of: scopeHold},
	"rl.renew":    {groups: users.Check, of: scopeHold},
	"rl.release":  {groups: users.Check, of: scopeHold},
	"rl.peek":     {groups: users.Check | users.Read, of: scopeTenant},
	"rl.explain":  {groups: users.Read, of: scopeTenant},
	"rl.limits":   {groups: users.Read, of: scopeTenant},
	"rl.top":      {groups: users.Read, of: scopeAll},
	"rl.denied":   {groups: users.Read, of: scopeAll},
	"rl.refund":   {groups: users.Admin, of: scopeTenant},
	"rl.reset":    {groups: users.Admin, of: scopeShared},
	"rl.config":   {groups: users.Admin, of: scopeAll},
	"cl.throttle": {groups: users.Dialects, of: scopeKeys},
	"gcra":        {groups: users.Dialects, of: scopeKeys},
	"throttle":    {groups: users.Dialects, of: scopeKeys},
	"del":         {groups: users.Dialects, of: scopeKeys},
	"unlink":      {groups: users.Dialects, of: scopeKeys},
	"auth":        {unauthenticated: true},
	"hello":       {unauthenticated: true},
	"quit":        {unauthenticated: true},
	"reset":       {unauthenticated: true},
}

// accessOf returns the rights that a command needs.
func accessOf(c *command) access {
	if a, ok := accessTable[c.full]; ok {
		return a
	}
	for _, f := range c.flags {
		if f == "admin" {
			return access{groups: users.Admin, of: scopeAll}
		}
	}
	return access{}
}

// endToken takes the user from a connection whose token has ended: AUTH or RESET give it
// another one. It also ends a transaction, which could neither be executed nor discarded.
func (s *Session) endToken() {
	if s.user != nil && !s.user.Until.IsZero() && !s.h.opts.Now().Before(s.user.Until) {
		s.setUser(nil)
		s.tx = nil
	}
}

// permit returns an error reply unless the user of the connection may send a command.
func (s *Session) permit(c *command, args [][]byte) (errReply string) {
	s.endToken()
	switch u := s.user; {
	case s.revoked.Load():
		return notAuthenticated
	case u != nil && u.MayAll():
		return ""
	case c.access.unauthenticated || !c.takes(len(args)): // the command refuses the latter
		return ""
	case u == nil:
		return notAuthenticated
	default:
		return noPermission("this user ", c.refusal(u, args))
	}
}

// noPermission returns the error reply for the reason of a refusal, or "" without one.
func noPermission(subject, reason string) string {
	if reason == "" {
		return ""
	}
	return "NOPERM " + subject + reason
}

// refusal returns the reason why a user may not send a command, or "".
func (c *command) refusal(u *users.User, args [][]byte) string {
	if c.access.groups == 0 {
		return ""
	}
	if !u.May(c.access.groups) || c.access.of == scopeAll && !u.MayUseAll() {
		needs := "+@" + strings.Join(c.access.groups.Names(), " or +@")
		if c.access.of == scopeAll {
			needs += " and ~*"
		}
		return "has no permissions to run the '" + c.full + "' command: it needs " + needs
	}
	switch c.access.of {
	case scopeTenant, scopeShared:
		return c.refusalOfTenant(u, args)
	case scopeKeys:
		for _, key := range c.keys.of(args) {
			if !u.MayUse(alias(key)) {
				return "has no permissions to access one of the keys used as arguments"
			}
		}
	case scopeHold:
		// A malformed id, which has no tenant, is refused by the command.
		if tenant, ok := tenantOfHold(args[1:], u); ok && !u.MayUse(tenant) {
			return c.mayNot(u, tenant)
		}
	}
	return ""
}

// ownTenant is the word for the tenant of the user.
const ownTenant = "-"

// refusalOfTenant returns the reason why a user may not send a command for the tenant in
// its first argument.
func (c *command) refusalOfTenant(u *users.User, args [][]byte) string {
	switch {
	case u.MayUseAll():
		return ""
	case len(args) < 2:
		return "may not list the limits of all tenants: name one"
	case string(args[1]) != ownTenant && u.MayUse(alias(args[1])):
		return ""
	case string(args[1]) == ownTenant && c.access.of == scopeTenant:
		return "" // without a tenant of the user it is an error of the command
	}
	return c.mayNot(u, string(args[1]))
}

// ofToken is what refuses another tenant than that of a token, which follows.
const ofToken = "its token is for tenant '"

// mayNot returns the reason for a tenant that the user may not use.
func (c *command) mayNot(u *users.User, tenant string) string {
	verb := "check"
	switch c.access.groups {
	case users.Read:
		verb = "read"
	case users.Admin:
		verb = "administer"
	}
	reason := "may not " + verb + " tenant '" + quote([]byte(tenant)) + "'"
	if u.Name == users.TokenName { // it has no rules
		reason += ": " + ofToken + quote([]byte(u.Tenant())) + "'"
	}
	return reason
}

// tenantOfHold returns the tenant of a reservation or slot from the arguments of a settlement.
func tenantOfHold(args [][]byte, u *users.User) (tenant string, ok bool) {
	for _, h := range []limit.Hold{limit.HoldReservation, limit.HoldSlot} {
		what := limit.Settlement{Hold: h}
		if _, _, errReply := parseHeld(args, u, &what); errReply == "" {
			return what.Tenant, true
		}
	}
	return "", false
}
