package commands

import (
	"context"
	"slices"

	"github.com/limitgate/limitgate/internal/users"
)

// all returns the users: those of the file, or the one that there is without a file.
func (s *Session) all() []*users.User {
	if s.h.opts.Users == nil {
		return []*users.User{users.Unrestricted}
	}
	return s.h.opts.Users.Users().All()
}

// userNamed returns a user, or nil.
func (s *Session) userNamed(name string) *users.User {
	if s.h.opts.Users == nil && name == users.DefaultName {
		return users.Unrestricted
	}
	if s.h.opts.Users == nil {
		return nil
	}
	return s.h.opts.Users.Users().User(name)
}

func aclWhoAmI(_ context.Context, s *Session, _ [][]byte) { s.out.bulk(s.userName()) }

func aclUsers(_ context.Context, s *Session, _ [][]byte) {
	all := s.all()
	s.out.array(len(all))
	for _, u := range all {
		s.out.bulk(u.Name)
	}
}

// aclList replies with the rules of all users, as in their file but without hashes.
func aclList(_ context.Context, s *Session, _ [][]byte) {
	all := s.all()
	s.out.array(len(all))
	for _, u := range all {
		s.out.bulk(u.String())
	}
}

func aclGetUser(_ context.Context, s *Session, args [][]byte) {
	u := s.userNamed(string(args[2]))
	if u == nil {
		s.out.null()
		return
	}
	flags := []string{"off"}
	if u.Enabled {
		flags[0] = "on"
	}
	if u.NoPassword {
		flags = append(flags, "nopass")
	}
	s.out.mapping(6)
	s.out.bulk("flags")
	s.out.set(len(flags))
	for _, f := range flags {
		s.out.bulk(f)
	}
	s.out.bulk("passwords")
	s.out.array(u.PasswordCount())
	for range u.PasswordCount() {
		s.out.bulk(users.Hidden)
	}
	s.out.pair("commands", u.Groups())
	s.out.pair("keys", u.Patterns())
	s.out.pair("channels", u.Channels())
	s.out.bulk("selectors")
	s.out.array(0)
}

// aclDryRun replies OK if a user may send a command, and otherwise the reason.
func aclDryRun(_ context.Context, s *Session, args [][]byte) {
	u := s.userNamed(string(args[2]))
	if u == nil {
		s.out.error("ERR User '" + quote(args[2]) + "' not found")
		return
	}
	c, errReply := s.h.find(args[3:])
	if errReply != "" {
		s.out.error(errReply)
		return
	}
	if reason := c.refusal(u, args[3:]); reason != "" {
		s.out.bulk("User " + u.Name + " " + reason)
		return
	}
	if c.refusesBypass(s.h, u, args[3:]) {
		s.out.bulk("User " + u.Name + " " + noBypass)
		return
	}
	s.out.ok()
}

// aclLoad reads the file of users again.
func aclLoad(_ context.Context, s *Session, _ [][]byte) {
	if s.h.opts.ReloadUsers == nil {
		s.out.error("ERR This proxy has no file of users: start it with --users FILE")
		return
	}
	s.reply("the users were not reloaded", s.h.opts.ReloadUsers())
}

// aclCat replies with the categories, or the commands of one category.
func aclCat(_ context.Context, s *Session, args [][]byte) {
	switch len(args) {
	case 2:
		s.out.bulks(aclCategories)
	case 3:
		if !slices.ContainsFunc(aclCategories, func(c string) bool { return equalFold(args[2], c) }) {
			s.out.error("ERR Unknown category '" + quote(args[2]) + "'")
			return
		}
		s.out.bulks(s.h.names(func(c *command) bool { return c.in(args[2]) }))
	default:
		s.out.error(subcommandError(args))
	}
}

// aclCategories are those of Redis, of which most are empty here.
var aclCategories = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo",
	"stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting", "check", "dialects", "bypass", "all",
}

// categories returns the categories of a command: those of Redis for its speed and its group,
// and the groups of users that may send it.
func (c *command) categories() []string {
	out := []string{"slow"}
	for _, f := range c.flags {
		switch f {
		case "fast":
			out[0] = "fast"
		case "write":
			out = append(out, "write")
		}
	}
	if c.group == groupConnection {
		out = append(out, "connection")
	}
	if c.access.groups&users.Admin != 0 {
		out = append(out, "dangerous")
	}
	return append(out, c.access.groups.Names()...)
}

func (c *command) in(category []byte) bool {
	if equalFold(category, "all") {
		return true
	}
	return slices.ContainsFunc(c.categories(), func(name string) bool { return equalFold(category, name) })
}
