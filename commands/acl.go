package commands

import (
	"context"
	"slices"
)

// There is one user, with all permissions.

func aclWhoAmI(_ context.Context, s *Session, _ [][]byte) { s.out.bulk(defaultUser) }

func aclUsers(_ context.Context, s *Session, _ [][]byte) {
	s.out.array(1)
	s.out.bulk(defaultUser)
}

func aclList(_ context.Context, s *Session, _ [][]byte) {
	s.out.array(1)
	s.out.bulk("user " + defaultUser + " on nopass ~* &* +@all")
}

func aclGetUser(_ context.Context, s *Session, args [][]byte) {
	if string(args[2]) != defaultUser {
		s.out.null()
		return
	}
	s.out.mapping(6)
	s.out.bulk("flags")
	s.out.set(2)
	s.out.bulk("on")
	s.out.bulk("nopass")
	s.out.bulk("passwords")
	s.out.array(0)
	s.out.pair("commands", "+@all")
	s.out.pair("keys", "~*")
	s.out.pair("channels", "&*")
	s.out.bulk("selectors")
	s.out.array(0)
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
	"stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting",
}

// categories returns the categories of a command.
func (c *command) categories() []string {
	out := []string{"slow"}
	for _, f := range c.flags {
		switch f {
		case "fast":
			out[0] = "fast"
		case "readonly":
			out = append(out, "read")
		case "write":
			out = append(out, "write")
		case "admin":
			out = append(out, "admin", "dangerous")
		}
	}
	if c.group == groupConnection {
		out = append(out, "connection")
	}
	return out
}

func (c *command) in(category []byte) bool {
	return slices.ContainsFunc(c.categories(), func(name string) bool { return equalFold(category, name) })
}
