package commands

import (
	"context"
	"strconv"
	"strings"
)

func pingCommand(_ context.Context, s *Session, args [][]byte) {
	switch len(args) {
	case 1:
		s.out.simple("PONG")
	case 2:
		s.out.bulk(string(args[1]))
	default:
		s.out.error("ERR wrong number of arguments for 'ping' command")
	}
}

func echoCommand(_ context.Context, s *Session, args [][]byte) { s.out.bulk(string(args[1])) }

func quitCommand(_ context.Context, s *Session, _ [][]byte) {
	s.out.ok()
	s.quit = true
}

func selectCommand(_ context.Context, s *Session, args [][]byte) {
	n, err := strconv.Atoi(string(args[1]))
	switch {
	case err != nil:
		s.out.error("ERR invalid DB index")
	case n != 0:
		s.out.error("ERR DB index is out of range")
	default:
		s.out.ok()
	}
}

// authCommand answers as a Redis without a password does.
func authCommand(_ context.Context, s *Session, args [][]byte) {
	switch {
	case len(args) > 3:
		s.out.error("ERR syntax error")
	case len(args) == 2:
		s.out.error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	case string(args[1]) == defaultUser:
		s.out.ok() // the default user needs no password, so any will do
	default:
		s.out.error("WRONGPASS invalid username-password pair or user is disabled.")
	}
}

const defaultUser = "default"

// helloCommand chooses the protocol version and introduces the server.
func helloCommand(_ context.Context, s *Session, args [][]byte) {
	resp3, rest := s.out.resp3, args[1:]
	if len(rest) > 0 {
		version, err := strconv.Atoi(string(rest[0]))
		if err != nil {
			s.out.error("ERR Protocol version is not an integer or out of range")
			return
		}
		if version != 2 && version != 3 {
			s.out.error("NOPROTO unsupported protocol version")
			return
		}
		resp3, rest = version == 3, rest[1:]
	}
	name, complaint := helloOptions(rest)
	if complaint != "" {
		s.out.error(complaint)
		return
	}
	s.out.resp3 = resp3
	s.mu.Lock()
	s.resp3 = resp3
	if name != nil {
		s.name = string(name)
	}
	s.mu.Unlock()
	s.out.mapping(7)
	s.out.pair("server", "redis")
	s.out.pair("version", redisVersion)
	s.out.pair("proto", protocol(resp3))
	s.out.pair("id", s.id)
	s.out.pair("mode", "standalone")
	s.out.pair("role", "master")
	s.out.bulk("modules")
	s.out.array(0)
}

func protocol(resp3 bool) int {
	if resp3 {
		return 3
	}
	return 2
}

// helloOptions reads [AUTH user password] [SETNAME name].
func helloOptions(rest [][]byte) (name []byte, complaint string) {
	for len(rest) > 0 {
		switch {
		case equalFold(rest[0], "AUTH") && len(rest) >= 3:
			if string(rest[1]) != defaultUser {
				return nil, "WRONGPASS invalid username-password pair or user is disabled."
			}
			rest = rest[3:]
		case equalFold(rest[0], "SETNAME") && len(rest) >= 2:
			if !validClientName(rest[1]) {
				return nil, clientNameComplaint
			}
			name, rest = rest[1], rest[2:]
		default:
			return nil, "ERR Syntax error in HELLO option '" + quote(rest[0]) + "'"
		}
	}
	return name, ""
}

func resetConnectionCommand(_ context.Context, s *Session, _ [][]byte) {
	s.out.resp3, s.tx = false, nil
	s.mu.Lock()
	s.name, s.resp3 = "", false
	s.mu.Unlock()
	s.out.simple("RESET")
}

const clientNameComplaint = "ERR Client names cannot contain spaces, newlines or special characters."

// maxClientName bounds what a client may call itself.
const maxClientName = 256

func validClientName(name []byte) bool {
	for _, c := range name {
		if c < '!' || c > '~' {
			return false
		}
	}
	return len(name) <= maxClientName
}

// clientCommand answers the subcommands that clients use on connecting, and
// those with which people look around.
func clientCommand(_ context.Context, s *Session, args [][]byte) {
	sub := strings.ToUpper(quote(args[1]))
	wants := map[string]int{
		"ID": 2, "INFO": 2, "GETNAME": 2, "SETNAME": 3, "SETINFO": 4, "NO-EVICT": 3, "NO-TOUCH": 3, "TRACKING": -3, "LIST": -2, "KILL": -3,
	}
	want, known := wants[sub]
	if !known {
		s.out.error("ERR unknown subcommand '" + quote(args[1]) + "'. Try CLIENT HELP.")
		return
	}
	if want > 0 && len(args) != want || len(args) < -want {
		s.out.error("ERR wrong number of arguments for 'client|" + strings.ToLower(sub) + "' command")
		return
	}
	switch sub {
	case "ID":
		s.out.integer(s.id)
	case "INFO":
		s.out.text(s.describe() + "\n")
	case "LIST":
		s.out.text(s.h.list())
	case "GETNAME":
		s.clientGetName()
	case "SETNAME":
		s.clientSetName(args[2])
	case "SETINFO":
		s.clientSetInfo(args)
	case "TRACKING":
		s.clientTracking(args[2])
	case "KILL":
		s.clientKill(args[2:])
	default:
		s.out.ok()
	}
}

func (s *Session) clientGetName() {
	s.mu.Lock()
	name := s.name
	s.mu.Unlock()
	if name == "" {
		s.out.null()
		return
	}
	s.out.bulk(name)
}

func (s *Session) clientSetName(name []byte) {
	if !validClientName(name) {
		s.out.error(clientNameComplaint)
		return
	}
	s.mu.Lock()
	s.name = string(name)
	s.mu.Unlock()
	s.out.ok()
}

func (s *Session) clientSetInfo(args [][]byte) {
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

// clientTracking accepts what costs nothing: nothing here is ever cached by
// clients, so there is nothing to be told about.
func (s *Session) clientTracking(mode []byte) {
	if equalFold(mode, "OFF") || equalFold(mode, "ON") {
		s.out.ok()
		return
	}
	s.out.error("ERR syntax error")
}
