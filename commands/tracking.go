package commands

import "context"

// tracking is the state that a client set with CLIENT TRACKING. Clients cache nothing of
// this server, so no invalidation is ever sent; the state is stored because clients query
// it. Prefixes are not stored: they could be long.
type tracking struct {
	on, bcast, optin, optout, noloop bool
	prefixed                         bool // there was a PREFIX
	redirect                         int64
	caching                          string // argument of the last CACHING
}

// clientTracking serves CLIENT TRACKING ON|OFF and its options, checked in the same order
// as in Redis.
func clientTracking(_ context.Context, s *Session, args [][]byte) {
	asked, errReply := s.trackingOptions(args[3:])
	if errReply != "" {
		s.out.error(errReply)
		return
	}
	if equalFold(args[2], "OFF") {
		s.tracked = tracking{}
		s.out.ok()
		return
	}
	was := &s.tracked
	switch {
	case !equalFold(args[2], "ON"):
		s.out.error(syntaxError)
	case asked.prefixed && !asked.bcast:
		s.out.error("ERR PREFIX option requires BCAST mode to be enabled")
	case was.on && was.bcast != asked.bcast:
		s.out.error("ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.")
	case asked.bcast && (asked.optin || asked.optout):
		s.out.error("ERR OPTIN and OPTOUT are not compatible with BCAST")
	case asked.optin && asked.optout:
		s.out.error("ERR You can't specify both OPTIN mode and OPTOUT mode")
	case asked.optin && was.optout || asked.optout && was.optin:
		s.out.error("ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.")
	default:
		asked.on = true
		*was = asked
		s.out.ok()
	}
}

func (s *Session) trackingOptions(rest [][]byte) (asked tracking, errReply string) {
	for len(rest) > 0 {
		n := 1
		switch {
		case equalFold(rest[0], "REDIRECT") && len(rest) > 1:
			id, ok := parseInteger(rest[1])
			switch {
			case asked.redirect != 0:
				return asked, "ERR A client can only redirect to a single other client"
			case !ok:
				return asked, notAnInteger
			case !s.h.has(id):
				return asked, "ERR The client ID you want redirect to does not exist"
			}
			asked.redirect, n = id, 2
		case equalFold(rest[0], "PREFIX") && len(rest) > 1:
			asked.prefixed, n = true, 2
		case equalFold(rest[0], "BCAST"):
			asked.bcast = true
		case equalFold(rest[0], "OPTIN"):
			asked.optin = true
		case equalFold(rest[0], "OPTOUT"):
			asked.optout = true
		case equalFold(rest[0], "NOLOOP"):
			asked.noloop = true
		default:
			return asked, syntaxError
		}
		rest = rest[n:]
	}
	return asked, ""
}

func clientCaching(_ context.Context, s *Session, args [][]byte) {
	yes, t := equalFold(args[2], "YES"), &s.tracked
	switch {
	case !t.on:
		s.out.error("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case !yes && !equalFold(args[2], "NO"):
		s.out.error(syntaxError)
	case yes && !t.optin:
		s.out.error("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
	case !yes && !t.optout:
		s.out.error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	default:
		t.caching = "caching-no"
		if yes {
			t.caching = "caching-yes"
		}
		s.out.ok()
	}
}

func (t *tracking) target() int64 {
	if !t.on {
		return -1
	}
	return t.redirect
}

func clientGetRedir(_ context.Context, s *Session, _ [][]byte) { s.out.integer(s.tracked.target()) }

func clientTrackingInfo(_ context.Context, s *Session, _ [][]byte) {
	t := &s.tracked
	flags := []string{"off"}
	if t.on {
		flags[0] = "on"
	}
	for _, f := range []struct {
		set  bool
		name string
	}{{t.bcast, "bcast"}, {t.optin, "optin"}, {t.optout, "optout"}, {t.caching != "", t.caching}, {t.noloop, "noloop"}} {
		if f.set {
			flags = append(flags, f.name)
		}
	}
	s.out.mapping(3)
	s.out.bulk("flags")
	s.out.set(len(flags))
	for _, f := range flags {
		s.out.bulk(f)
	}
	s.out.pair("redirect", t.target())
	s.out.bulk("prefixes")
	s.out.array(0)
}
