package commands

import (
	"context"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// mostNearLimits and mostNearBytes bound the ids that are compared with one that no limit has, and their letters: it takes
// some 2 ms at most.
const (
	mostNearLimits = 500
	mostNearBytes  = 8 << 10
)

// noLimit returns the error for an id that no limit has, with the one of ids that is near.
func noLimit(id []byte, ids []string) string {
	if string(id) == limit.InlineID {
		return "ERR no limit 'dialect' is set: it is that of CL.THROTTLE, GCRA and THROTTLE, whose commands carry it; DEL key resets the bucket of a key"
	}
	errReply := "ERR no limit '" + quote(id) + "': RL.LIMITS lists them"
	letters := 0
	for _, other := range ids {
		letters += len(other)
	}
	if letters <= mostNearBytes {
		errReply += limit.DidYouMean(quote(id), ids)
	}
	return errReply
}

// idsOf returns the ids of the limits of a tenant, which its replies have too. Of very many limits it returns none.
func (h *Handler) idsOf(tenant string) (ids []string) {
	set := h.opts.Limiter.Limits()
	if len(set.IDs) > mostNearLimits {
		return nil
	}
	for _, l := range set.TenantLimits(tenant) {
		ids = append(ids, l.ID)
	}
	return ids
}

// orTenant adds advice to the error for RL.RESET with an id that no limit has: a tenant may stand in its place.
func (h *Handler) orTenant(tenant string, id []byte) string {
	if h.opts.Limiter.Limits().LimitByID(tenant) != nil {
		return "; '" + quote([]byte(tenant)) + "' is one: the order is RL.RESET tenant limit_id"
	}
	if tenant != "-" {
		return ""
	}
	return "; behind - stands a shared limit, and RL.RESET " + quote(id) + " resets a tenant"
}

// resetCommand replies with the number of buckets removed.
func resetCommand(ctx context.Context, s *Session, args [][]byte) {
	if len(args) > 3 {
		s.out.error(s.h.wrongNumber("rl.reset", args))
		return
	}
	tenant, id := string(args[1]), ""
	if len(args) == 3 {
		id = string(args[2])
		l := s.h.opts.Limiter.Limits().LimitByID(id)
		if l == nil {
			s.out.error(noLimit(args[2], s.h.opts.Limiter.Limits().IDs) + s.h.orTenant(tenant, args[2]))
			return
		}
		if l.SpansTenants() != (tenant == "-") {
			kind, right := "a shared limit", "RL.RESET - "+id
			if !l.SpansTenants() {
				kind, right = "no shared limit", "RL.RESET tenant "+id
			}
			s.out.error("ERR invalid tenant '" + quote(args[1]) + "': '" + quote(args[2]) + "' is " + kind + ", and is reset with " + right)
			return
		}
	}
	switch {
	case tenant == "-" && id == "":
		s.out.error("ERR limit_id required: RL.RESET - limit_id")
		return
	case tenant == "-":
		tenant = ""
	default:
		if err := limit.CheckName(tenant); err != nil {
			s.out.error(invalid("tenant", args[1], err))
			return
		}
	}
	n, err := s.h.opts.Limiter.Reset(ctx, tenant, id)
	if err != nil {
		reason := storeReason(err)
		if strings.Contains(err.Error(), "LGFORMAT") {
			reason = "a key of the tenant holds a value that is no bucket: find it by TYPE in Redis, and delete it by DEL"
		}
		s.out.error("ERR not all counters were reset: " + reason)
		return
	}
	if advice := s.h.notATenant(tenant); n == 0 && id == "" && advice != "" {
		s.out.error("ERR no counters of tenant '" + quote(args[1]) + "': " + advice)
		return
	}
	s.out.integer(n)
}

// notATenant returns advice about a name that was given as a tenant and is most likely none, or "".
func (h *Handler) notATenant(name string) string {
	set := h.opts.Limiter.Limits()
	switch l := set.LimitByID(name); {
	case set.Lists(name):
		return ""
	case name == "*":
		return "one tenant is reset at a time"
	case l != nil && l.SpansTenants():
		return "a shared limit is reset with RL.RESET - " + name
	case l != nil:
		return "it is the id of a limit, and the tenant is missing: RL.RESET TENANT " + name
	}
	return ""
}

// storeReason returns the reason for a reply that the store did not do what an operator wants, and the
// next step.
func storeReason(err error) string {
	text := err.Error()
	if len(text) > maxReason {
		text = text[:maxReason] + "..."
	}
	return "the store is away or refuses (" + escape([]byte(text)) + "); send the command again when RL.CONFIG SHARDS has no error"
}

// refundCommand replies 1 when units were refunded, and 0 when the tenant has no bucket
// of its own for such a request.
func refundCommand(_ context.Context, s *Session, args [][]byte) {
	var req limit.Request
	errReply := costErrReply
	if !isOption(args[4]) {
		errReply = s.parseCheck(args, &req, &options{})
	}
	if errReply != "" {
		s.out.error(errReply)
		return
	}
	returned, answered := s.h.opts.Limiter.Credit(&s.batch, &req)
	s.dropChecks()
	switch {
	case returned:
		s.out.integer(1)
	case !answered:
		s.out.error("ERR nothing was refunded: the store is away; send the command again when RL.CONFIG SHARDS has no error")
	default:
		s.out.integer(0)
	}
}

// configCommand serves RL.CONFIG VERSION, RELOAD, PROMOTE, ABORT and SHARDS.
func configCommand(_ context.Context, s *Session, args [][]byte) {
	switch {
	case len(args) == 2 && equalFold(args[1], "VERSION"):
		st := s.h.opts.Limits.Status()
		s.out.mapping(6)
		s.out.pair("version", st.Version)
		s.out.pair("source", st.Source)
		s.out.pair("age_ms", s.h.opts.Now().Sub(st.Loaded).Milliseconds())
		s.out.pair("stale", st.Error != "")
		s.out.pair("error", st.Error)
		s.out.pair("trial", st.Trial)
	case len(args) == 2 && equalFold(args[1], "RELOAD"):
		s.reply("the limits were not reloaded", s.h.opts.Limits.Reload())
	case len(args) == 2 && equalFold(args[1], "PROMOTE"):
		s.reply("nothing was promoted", s.h.opts.Limits.Promote())
	case len(args) == 2 && equalFold(args[1], "ABORT"):
		s.reply("nothing was aborted", s.h.opts.Limits.Abort())
	case len(args) == 2 && equalFold(args[1], "SHARDS"):
		shards := s.h.opts.Shards()
		s.out.array(len(shards))
		for _, sh := range shards {
			s.out.mapping(5)
			s.out.pair("addr", sh.Addr)
			s.out.pair("breaker", sh.Breaker)
			s.out.pair("error", sh.Error)
			s.out.pair("failing_ms", sh.Failing.Milliseconds())
			s.out.pair("next_probe_ms", sh.NextProbe.Milliseconds())
		}
	default:
		usage := s.h.table["rl.config"].usage
		s.out.error("ERR unknown subcommand or wrong number of arguments for '" + quote(args[1]) + "': RL.CONFIG " + usage + near(quote(args[1]), strings.Split(usage, " | ")))
	}
}

// maxReason bounds the reason in a reply, in bytes.
const maxReason = 4 << 10

// reply replies OK, or for an error with the text of not and the reason.
func (s *Session) reply(not string, err error) {
	if err != nil {
		text := strings.ReplaceAll(err.Error(), "\n", "; ")
		if len(text) > maxReason {
			text = text[:maxReason] + "..."
		}
		s.out.error("ERR " + not + ": " + text)
		return
	}
	s.out.ok()
}

// helpCommand replies with one line per command.
func helpCommand(_ context.Context, s *Session, _ [][]byte) { s.out.raw(s.rendered().help) }
