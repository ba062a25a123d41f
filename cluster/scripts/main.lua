-- Decides runs of calls, each call all or nothing. The calls of a run differ
-- only in their buckets: they ask the same limits for the same costs.
--
-- KEYS     the keys of all calls, one after the other, see below; or none
-- ARGV     without KEYS first the number of keys, and then these. Then for each
--          run:
--            what to do: "take" or "peek", which changes nothing; "takes" and
--            "peeks" where calls stand for several checks; "refund"; "once", which
--            takes, or repeats the answer that is kept of the same call, and "hold",
--            which also keeps it to be settled; "revoke", which refunds and forgets
--            that answer; "commit", "cancel", "release" or "renew", which settle
--            the number of limits and the number of calls
--            for each limit: what it is and the cost (read_limit) and, where all
--            its buckets are fields of one name, that name
--          and then for each call of the run:
--            of "once" and "hold" only: for how many ms the answer is kept
--            of "hold" only: for each limit 1 if its charge follows what is used, else 0
--            of what settles only: the units used; for how many ms from now to hold,
--            0 for as long as before; and 1 if the script may use keys that it does
--            not declare, else 0
--            of "takes" and "peeks" only: how many checks it stands for
--            the other fields of those buckets that are fields of the tenant's
--            hash
--            of "refund" and "revoke" only: for each bucket the window that was charged
--
-- The keys of a call are, of "once", "hold" and "revoke", that of its answer, then the
-- tenant's hash, if any bucket is a field of it, then the buckets that are keys of
-- their own, in the order of the limits. Those of what settles are that of the answer,
-- and then the keys that it named.
--
-- Replies the time in microseconds and then for each call, in their order, what
-- its buckets were before it took anything, at that time and by their limits:
-- for a token bucket its level, or content and remainder where there is no
-- level; for a window six numbers; for units that end one by one four. A call that stands for n checks takes what n
-- equal ones would have taken one after the other. Of a refund it replies the
-- number of buckets that took units back; of "once" and "hold" first whether it repeats
-- itself, 1 or 0, and then the time is that of the first answer. Of what settles it
-- replies 1, or "LGDONE " and lines of names of buckets that changed; 2 if it
-- was settled already, and 0 if nothing is held; or, having done nothing, "LGKEYS " and
-- lines of keys that have to be declared. A call that could not
-- be decided is replied an error text, and took nothing: so has a key that is not here,
-- and a clock outside the boundaries of a calendar window.

local check_of = {takes = 'take', peeks = 'peek'}
local checks = {take = true, takes = true, peek = true, peeks = true}

while at <= #ARGV do
  local verb, n_limits, n_calls = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local several = check_of[verb]
  local limits, at_sight = {}, checks[verb]
  at = at + 3
  for i = 1, n_limits do
    local l = read_limit(ARGV[at], ARGV[at + 1])
    limits[i], at_sight = l, at_sight and l.sight and l.enforced
    l.text = ARGV[at]
    at = at + (l.one_field and 2 or 1)
  end
  local decide = at_sight and (n_limits == 1 and decide_one or decide_several) or decide_any
  decide(several or verb, limits, n_calls, several)
end
return out
