-- Decides runs of calls, each call all or nothing. The calls of a run differ
-- only in their buckets: they ask the same limits for the same costs.
--
-- KEYS     the keys of all calls, one after the other, see below; or none
-- ARGV     without KEYS first the number of keys, and then these. Then for each
--          run:
--            what to do: "take" or "peek", which changes nothing; "takes" and
--            "peeks" where calls stand for several checks; "refund"
--            the number of limits and the number of calls
--            for each limit: what it is (read_limit), the cost in units and,
--            where all its buckets are fields of one name, that name
--          and then for each call of the run:
--            of "takes" and "peeks" only: how many checks it stands for
--            the other fields of those buckets that are fields of the tenant's
--            hash
--            of "refund" only: for each bucket the window that was charged
--
-- The keys of a call are the tenant's hash first, if any bucket is a field of
-- it, then the buckets that are keys of their own, in the order of the limits.
--
-- Replies the time in microseconds and then for each call, in their order, what
-- its buckets were before it took anything, at that time and by their limits:
-- for a token bucket its level, or content and remainder where there is no
-- level; for a window six numbers. A call that stands for n checks takes what n
-- equal ones would have taken one after the other. Of a refund it replies the
-- number of buckets that took units back. A call that could not be decided is
-- replied an error text, and took nothing: so has a key that is not here, and a
-- clock outside the boundaries of a calendar window.

while at <= #ARGV do
  local verb, limits = ARGV[at], {}
  local several = verb == 'takes' or verb == 'peeks'
  local taking = verb == 'take' or verb == 'takes'
  local n_limits, n_calls = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  at = at + 3
  for i = 1, n_limits do
    limits[i] = read_limit(ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2])
    at = at + (limits[i].one_field and 3 or 2)
  end
  local plain, all_fields = verb ~= 'refund', true
  for i = 1, n_limits do
    plain = plain and limits[i].sight and limits[i].enforced
    all_fields = all_fields and limits[i].field
  end
  if plain and n_limits == 1 then
    decide_levels(limits, n_calls, several, taking)
    n_calls = 0
  elseif plain and all_fields then
    decide_fields(limits, n_calls, several, taking)
    n_calls = 0
  end
  for _ = 1, n_calls do
    local n = 1
    if several then
      n = tonumber(ARGV[at])
      at = at + 1
    end
    address(limits)
    if verb == 'refund' then
      refund_call(limits)
    else
      decide_call(limits, n, taking)
    end
  end
end
return out
