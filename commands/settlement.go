package commands

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"time"

	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// parseReserve parses `tenant op ip estimate { TTL ms | ID id | HEADERS | DIM name value }...`, the
// arguments after the command's name, into req, see parseCheck.
func (s *Session) parseReserve(args [][]byte, req *limit.Request, opts *options) (errReply string) {
	if len(args) < 5 {
		return s.h.wrongNumber("rl.reserve", args)
	}
	if isOption(args[4]) {
		return estimateErrReply
	}
	switch errReply = s.parseCheck(args, req, opts); errReply {
	case "":
		s.h.hold(req, limit.HoldReservation)
	case costErrReply:
		return estimateErrReply
	}
	return errReply
}

const estimateErrReply = "ERR estimate must be an integer between 1 and 2147483647"

// parseAcquire parses `tenant op ip { ID id | TTL ms | HEADERS | DIM name value }...`, the
// arguments after the command's name, into req, see parseCheck.
func (s *Session) parseAcquire(args [][]byte, req *limit.Request, opts *options) (errReply string) {
	if len(args) < 4 {
		return s.h.wrongNumber("rl.acquire", args)
	}
	if errReply = s.parseSubject(args, req); errReply != "" {
		return errReply
	}
	req.Cost = 1
	if errReply = s.parseOptions(args[4:], req, opts); errReply == "" {
		s.h.hold(req, limit.HoldSlot)
	}
	return errReply
}

// parseHold parses RL.RESERVE or RL.ACQUIRE, and returns the dialect of the reply.
func (s *Session) parseHold(f dialect, args [][]byte, req *limit.Request) (answer dialect, errReply string) {
	opts := options{takes: holdOptions}
	if f == dialectReserve {
		errReply = s.parseReserve(args, req, &opts)
	} else {
		errReply = s.parseAcquire(args, req, &opts)
	}
	if opts.headers {
		f = dialectHeldHeaders
	}
	return f, errReply
}

// held writes the reply for request i of a batch, which reserves or takes a slot: that of RL.CHECK
// with the id behind it.
func (s *Session) held(f dialect, b *limiter.Batch, i int) {
	d := &b.Decisions[i]
	if f == dialectHeldHeaders {
		s.decision(d, 9)
		s.out.headers(d)
	} else {
		s.decision(d, 8)
	}
	s.out.bulk(heldID(b, i))
}

// hold makes req a reservation or slot request, with a generated id unless it has one. It reports a short duration.
func (h *Handler) hold(req *limit.Request, what limit.Hold) {
	req.Hold = what
	if req.HoldFor == 0 {
		req.HoldFor = limit.DefaultHold
	}
	h.noteHold(req.HoldFor)
	if req.ID == "" {
		req.ID, req.Fresh = rand.Text(), true
	}
}

// ttlMistake returns the error for a duration that parseTTL refuses, with the number for one that has a unit.
func ttlMistake(arg []byte) string {
	ttl, err := time.ParseDuration(string(arg))
	if err != nil || ttl < limit.MinHold || ttl > limit.MaxHold || ttl%time.Millisecond != 0 {
		return ttlErrReply
	}
	return ttlErrReply + "; " + quote(arg) + " is " + strconv.FormatInt(ttl.Milliseconds(), 10)
}

const ttlErrReply = "ERR ttl must be an integer of milliseconds between 1 and 3600000"

// shortHold is the duration below which a reservation or a slot hardly outlives the work that it is for.
const shortHold = time.Second / 2

// secondsOfJobs are durations that are short in milliseconds, and in seconds those that people write for jobs: 10 minutes to an hour.
var secondsOfJobs = []int64{600, 900, 1800, 3600}

// noteHold reports the duration of a reservation or a slot that was most likely meant in seconds.
func (h *Handler) noteHold(ttl time.Duration) {
	if ttl < shortHold || slices.Contains(secondsOfJobs, ttl.Milliseconds()) {
		h.opts.ShortHold(ttl)
	}
}

// parseTTL parses the duration of a reservation or a slot in milliseconds.
func parseTTL(arg []byte) (time.Duration, bool) {
	ms, ok := parseCost(arg)
	ttl := time.Duration(ms) * time.Millisecond
	return ttl, ok && ttl >= limit.MinHold && ttl <= limit.MaxHold
}

// setHoldFor parses TTL ms.
func (s *Session) setHoldFor(rest [][]byte, req *limit.Request) (errReply string) {
	switch {
	case len(rest) < 2:
		return "ERR syntax error: TTL needs milliseconds behind it"
	case req.HoldFor != 0:
		return "ERR invalid option 'TTL': it is there twice"
	}
	ttl, ok := parseTTL(rest[1])
	if !ok {
		return ttlMistake(rest[1])
	}
	req.HoldFor = ttl
	return ""
}

// heldID returns the id under which request i of a batch is settled, empty if the request
// was denied.
func heldID(b *limiter.Batch, i int) string {
	if !b.Decisions[i].Allowed {
		return ""
	}
	return limit.HoldID(&b.Requests[i], b.Held(i))
}

// settler returns the command that settles reservations or slots by change. Its first
// arguments are the id that the request received, or `ID id TENANT tenant`.
func settler(h limit.Hold, change limit.Change) func(context.Context, *Session, [][]byte) {
	return func(_ context.Context, s *Session, args [][]byte) {
		what := limit.Settlement{Hold: h, Change: change}
		rest, kept, errReply := parseHeld(args[1:], s.user, &what)
		if errReply == "" {
			errReply = s.h.parseChange(rest, &what)
		}
		if errReply != "" {
			s.out.error(errReply)
			return
		}
		s.out.integer(int64(s.h.opts.Limiter.Settle(&what, kept)))
	}
}

// wrongHold is the error for an id of the other kind, by the kind of the command.
var wrongHold = map[limit.Hold]string{
	limit.HoldReservation: "it is of a slot, which RL.RELEASE gives back",
	limit.HoldSlot:        "it is of a reservation, which RL.COMMIT or RL.CANCEL settles",
}

// replies are the commands whose replies have ids, by the kind of the command that settles them.
var replies = map[limit.Hold]string{limit.HoldReservation: "RL.RESERVE", limit.HoldSlot: "RL.ACQUIRE"}

// idBehind reports whether the last of some arguments is an id, and no value of an option.
func idBehind(args [][]byte, h limit.Hold) bool {
	_, _, _, ok := limit.ParseHoldID(string(args[len(args)-1]), h)
	return ok && len(args) > 1
}

// parseHeld parses the id to be settled, and returns the words after it. A - is the tenant
// of the user. Kept is false if the id shows that no store has a record of it.
func parseHeld(args [][]byte, u *users.User, what *limit.Settlement) (rest [][]byte, kept bool, errReply string) {
	if !equalFold(args[0], "ID") {
		tenant, id, kept, ok := limit.ParseHoldID(string(args[0]), what.Hold)
		if _, _, _, other := limit.ParseHoldID(string(args[0]), limit.HoldReservation+limit.HoldSlot-what.Hold); !ok && other {
			return nil, false, "ERR invalid id '" + quote(args[0]) + "': " + wrongHold[what.Hold]
		}
		if !ok && idBehind(args, what.Hold) {
			return nil, false, "ERR invalid id '" + quote(args[0]) + "': the id stands in front, without tenant and op: '" + quote(args[len(args)-1]) + "'"
		}
		if !ok {
			return nil, false, "ERR invalid id '" + quote(args[0]) + "': want the id in the reply of " + replies[what.Hold] + ", or an id of your own as ID id TENANT tenant"
		}
		what.Tenant, what.ID = tenant, id
		return args[1:], kept, ""
	}
	if own := u.Tenant(); len(args) >= 4 && string(args[3]) == ownTenant && own != "" {
		args = append(args[:3:3], append([][]byte{[]byte(own)}, args[4:]...)...)
	}
	switch {
	case len(args) < 2:
		return nil, false, "ERR syntax error: the id is missing; write ID id TENANT tenant"
	case len(args) == 5 && equalFold(args[3], "TENANT"):
		return nil, false, "ERR syntax error: ID id TENANT tenant stands in front: write ID " + quote(args[1]) + " TENANT " + quote(args[4]) + " " + quote(args[2])
	case len(args) < 4 || !equalFold(args[2], "TENANT"):
		return nil, false, "ERR syntax error: the tenant is missing; write ID " + quote(args[1]) + " TENANT tenant"
	case string(args[3]) == ownTenant:
		return nil, false, tenantRequired
	}
	if err := limit.CheckName(string(args[1])); err != nil {
		return nil, false, invalid("id", args[1], err)
	}
	if err := limit.CheckName(string(args[3])); err != nil {
		return nil, false, invalid("tenant", args[3], err)
	}
	what.ID, what.Tenant = string(args[1]), string(args[3])
	return args[4:], true, ""
}

// parseChange parses the words after the id: for a commit the units used, for a renewal
// an optional TTL ms.
func (h *Handler) parseChange(rest [][]byte, what *limit.Settlement) (errReply string) {
	switch {
	case what.Change == limit.ChangeCommit && len(rest) == 1:
		units, ok := parseCost(rest[0])
		if !ok && string(rest[0]) != "0" {
			return "ERR actual must be an integer between 0 and 2147483647"
		}
		what.Units = units
	case what.Change == limit.ChangeRenew && len(rest) == 2 && equalFold(rest[0], "TTL"):
		ttl, ok := parseTTL(rest[1])
		if !ok {
			return ttlMistake(rest[1])
		}
		h.noteHold(ttl)
		what.For = ttl
	case what.Change == limit.ChangeCommit || len(rest) > 0:
		return h.wrongNumber("rl."+what.Change.String(), nil)
	}
	return ""
}
