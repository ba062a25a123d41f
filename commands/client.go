package commands

import (
	"context"
	"strings"
)

const clientNameErrReply = "ERR Client names cannot contain spaces, newlines or special characters."

// maxClientName is the maximum length of a client's name.
const maxClientName = 256

func validClientName(name []byte) bool {
	for _, c := range name {
		if c < '!' || c > '~' {
			return false
		}
	}
	return len(name) <= maxClientName
}

func clientID(_ context.Context, s *Session, _ [][]byte) { s.out.integer(s.id) }

func clientInfo(_ context.Context, s *Session, _ [][]byte) { s.out.text(string(s.describe(nil))) }

func clientGetName(_ context.Context, s *Session, _ [][]byte) {
	s.mu.Lock()
	name := s.name
	s.mu.Unlock()
	if name == "" {
		s.out.null()
		return
	}
	s.out.bulk(name)
}

func clientSetName(_ context.Context, s *Session, args [][]byte) {
	if !validClientName(args[2]) {
		s.out.error(clientNameErrReply)
		return
	}
	s.mu.Lock()
	s.name = string(args[2])
	s.mu.Unlock()
	s.out.ok()
}

func clientSetInfo(_ context.Context, s *Session, args [][]byte) {
	if !validClientName(args[3]) {
		s.out.error("ERR " + strings.ToLower(quote(args[2])) + " cannot contain spaces, newlines or special characters.")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case equalFold(args[2], "LIB-NAME"):
		s.libName = string(args[3])
	case equalFold(args[2], "LIB-VER"):
		s.libVer = string(args[3])
	default:
		s.out.error("ERR Unrecognized option '" + quote(args[2]) + "'")
		return
	}
	s.out.ok()
}

// clientSwitch accepts ON and OFF of options without effect here: no client is evicted,
// and there are no keys with a time of last use.
func clientSwitch(_ context.Context, s *Session, args [][]byte) {
	if !equalFold(args[2], "ON") && !equalFold(args[2], "OFF") {
		s.out.error(syntaxError)
		return
	}
	s.out.ok()
}

// clientUnblock replies that the client was not blocked: none ever is.
func clientUnblock(_ context.Context, s *Session, args [][]byte) {
	if len(args) > 4 {
		s.out.error(subcommandError(args))
		return
	}
	if len(args) == 4 && !equalFold(args[3], "TIMEOUT") && !equalFold(args[3], "ERROR") {
		s.out.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
		return
	}
	if _, ok := parseInteger(args[2]); !ok {
		s.out.error(notAnInteger)
		return
	}
	s.out.integer(0)
}

// subcommandError is Redis' error for a wrong number of arguments that the table cannot
// express as a maximum.
func subcommandError(args [][]byte) string {
	return "ERR unknown subcommand or wrong number of arguments for '" + quote(args[1]) + "'. Try " + strings.ToUpper(string(args[0])) + " HELP."
}
