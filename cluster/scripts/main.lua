-- Decides runs of calls, each call all or nothing. The calls of a run differ only in their
-- buckets: they have the same limits and costs.
--
--   KEYS     the keys of all calls, one after the other, see below; or none
--   ARGV     without KEYS first the number of keys, then the keys. Then for each run:
--              the op: "take" or "peek", which changes nothing; "takes" and "peeks" if
--              calls stand for several checks; "refund"; "once", which takes, or replays
--              the recorded answer of the same call; "hold", which is "once" and records
--              the buckets for a settlement; "revoke", which refunds and deletes the
--              record; "commit", "cancel", "release" or "renew", which settle
--              "reset", which removes fields of tenants' strings
--              the number of limits and the number of calls
--              for each limit: its parameters and the cost (read_limit) and, if all its
--              buckets are fields of one name, that name
--            and then for each call of the run:
--              "once" and "hold" only: the record TTL in ms
--              "hold" only: for each limit 1 if its charge follows the units used, else 0
--              settlements only: the units used; for how many ms from now to hold,
--              0 for as long as before; and 1 if the script may use keys that it does
--              not declare, else 0
--              "takes" and "peeks" only: the number of checks that it stands for
--              the other fields of those buckets that are fields of the tenant's string
--              "reset" only: the prefix of their names
--              "refund" and "revoke" only: for each bucket the window that was charged
--
-- The keys of a call are, for "once", "hold" and "revoke", the record key, then the
-- tenant's string, if any bucket is a field of it, then the buckets with keys of their own,
-- in the order of the limits. The keys of a settlement are the record key, then the keys
-- that a previous reply named.
--
-- Replies the time in microseconds and then for each call, in order, the states of its
-- buckets before it took anything: the level of a token bucket, or its content and remainder
-- if it has none; six numbers of a window, or -1 minus its units; four of expiring units. A
-- call of n checks takes as much as n equal ones, one after the other. For a refund it
-- replies how many buckets took units back. For "once" and "hold" it first replies 1 if the
-- answer is replayed, with its time, else 0. For a settlement it replies 1, or "LGDONE " and
-- lines with the names of buckets that changed; 2 if it was settled already, and 0 if nothing
-- is held; or, having done nothing, "LGKEYS " and lines with keys to declare. The reply for a
-- call that could not be decided, and took nothing, is an error text: for example if the
-- clock is outside the boundaries of a calendar window.

while at <= #ARGV do
  local run, n_calls, decided = at, tonumber(ARGV[at + 2]), 0
  at = nil
  local at_sight = WRITE_FORMAT == 3 and ARGV[run + 1] ~= '0' and string.sub(ARGV[run + 3], 2, 2) >= 'g' -- +16, see read_limit
  local window = at_sight and string.sub(ARGV[run + 3], 1, 1) == '3'
  local decide = at_sight and not window and decide_several or decide_rest
  if at_sight and ARGV[run + 1] == '1' then
    decided, at, key_at, n_out = (window and decide_window or decide_one)(run, n_calls, key_at, n_out)
  end
  if decided < n_calls then
    at, key_at, n_out = decide(run, n_calls - decided, at, key_at, n_out)
  end
end
return out
