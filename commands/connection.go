package commands

import "context"

func pingCommand(_ context.Context, s *Session, args [][]byte) {
	switch len(args) {
	case 1:
		s.out.simple("PONG")
	case 2:
		s.out.bulk(string(args[1]))
	default: // the table cannot express a maximum
		s.out.error("ERR wrong number of arguments for 'ping' command")
	}
}

func echoCommand(_ context.Context, s *Session, args [][]byte) { s.out.bulk(string(args[1])) }

func quitCommand(_ context.Context, s *Session, _ [][]byte) {
	s.out.ok()
	s.quit = true
}

func selectCommand(_ context.Context, s *Session, args [][]byte) {
	n, ok := parseInteger(args[1])
	switch {
	case !ok:
		s.out.error(notAnInteger)
	case n != 0:
		s.out.error("ERR DB index is out of range: there is database 0 alone")
	default:
		s.out.ok()
	}
}

// helloCommand sets the protocol version and replies with the properties of the server.
func helloCommand(ctx context.Context, s *Session, args [][]byte) {
	resp3, rest := s.out.resp3, args[1:]
	if len(rest) > 0 {
		version, ok := parseInteger(rest[0])
		if !ok {
			s.out.error("ERR Protocol version is not an integer or out of range")
			return
		}
		if version != 2 && version != 3 {
			s.out.error("NOPROTO unsupported protocol version")
			return
		}
		resp3, rest = version == 3, rest[1:]
	}
	name, auth, errReply := helloOptions(rest)
	if errReply == "" && auth != nil {
		errReply = s.logIn(ctx, string(auth[0]), string(auth[1]))
	}
	if errReply == "" && s.user == nil {
		errReply = helloNeedsAuth
	}
	if errReply != "" {
		s.out.error(errReply)
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
	s.out.pair("mode", serverMode)
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

// helloOptions parses [AUTH user password] [SETNAME name].
func helloOptions(rest [][]byte) (name []byte, auth [][]byte, errReply string) {
	for len(rest) > 0 {
		switch {
		case equalFold(rest[0], "AUTH") && len(rest) >= 3:
			auth, rest = rest[1:3], rest[3:]
		case equalFold(rest[0], "SETNAME") && len(rest) >= 2:
			if !validClientName(rest[1]) {
				return nil, nil, clientNameErrReply
			}
			name, rest = rest[1], rest[2:]
		default:
			return nil, nil, "ERR Syntax error in HELLO option '" + quote(rest[0]) + "'"
		}
	}
	return name, auth, ""
}

func resetConnectionCommand(_ context.Context, s *Session, _ [][]byte) {
	s.out.resp3, s.tx, s.tracked = false, nil, tracking{}
	s.replyMode, s.replyForced = replyOn, true
	s.mu.Lock()
	s.name, s.resp3 = "", false
	s.mu.Unlock()
	s.logOut()
	s.out.simple("RESET")
}
