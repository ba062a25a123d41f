-- Buckets with units that expire one by one: a unit of a sliding log expires a period after
-- it was taken, a slot of concurrency at the end of its holder's time. The units are the
-- members of a sorted set. The score of a unit of a log is the time at which it was taken.
-- The score of a slot is the time at which it expires, and the member is its holder. This
-- is the twin of limit.UnitLog: see there.
--
-- The state of such a bucket is four numbers: the number of units; the time at which a
-- further check fits, after as many as fit now were granted; the time at which the last
-- unit expires; and the time at which a unit taken now would expire.

local function text(n) return string.format('%.0f', n) end

-- span returns how long units live after their score.
local function span(l)
  if l.algorithm == SLIDING_LOG then
    return l.period
  end
  return 0
end

-- members returns at most n unexpired members of a set with their scores, starting with the
-- first-th.
local function members(k, l, first, n)
  return redis.pcall('ZRANGEBYSCORE', k, '(' .. text(now - span(l)), '+inf', 'WITHSCORES', 'LIMIT', first - 1, n)
end

-- score returns the score of the nth unexpired member. For a log it is at most now: a later
-- score was written before the clock was set back, and counts as taken now.
local function score(k, l, n)
  local m = n > 0 and members(k, l, n, 1)
  m = m and not m.err and tonumber(m[2])
  return m and l.algorithm == SLIDING_LOG and min(m, now) or m
end

local function load_units(b, l, hold)
  local k = b.key
  local used = redis.pcall('ZCOUNT', k, '(' .. text(now - span(l)), '+inf')
  if failure(used) then
    return nil, used.err
  end
  local last = redis.pcall('ZREVRANGE', k, 0, 0, 'WITHSCORES')
  last = used > 0 and tonumber(last[2]) or 0
  b.stored, b.rewritten = used, l.algorithm == SLIDING_LOG and last > now
  if b.rewritten then
    last = now
  end
  local granted = max(0, floor((l.capacity - used) / l.cost)) * l.cost
  -- n of the units, including those that may be granted now, must expire first.
  local n = used + granted + l.cost - l.capacity
  local fits, mine = score(k, l, n), now
  if granted > 0 and (not fits or fits > mine) then
    fits = max(score(k, l, n - granted) or 0, mine)
  end
  if l.algorithm == CONCURRENCY then
    mine = now + (hold and hold.ttl or 0) * 1000
  end
  b.state = {used, (fits or 0) + span(l), used > 0 and last + span(l) or 0, mine + span(l)}
  return l.capacity - used
end

-- arm sets the expiry of a set to the expiry of its last member. It returns an error text
-- or nil.
local function arm(k, l)
  local last = redis.pcall('ZREVRANGE', k, 0, 0, 'WITHSCORES')
  if last.err or not last[2] then
    return last.err
  end
  return failure(redis.pcall('PEXPIREAT', k, text(ceil((tonumber(last[2]) + span(l)) / 1000))))
end

-- add adds units to a log now. Their names are numbered from the last one on.
local function add(k, units)
  local first = redis.pcall('ZCOUNT', k, text(now), text(now))
  if failure(first) then
    return first.err
  end
  local args = {'ZADD', k}
  for j = 1, units do
    args[2 * j + 1], args[2 * j + 2] = text(now), string.format('%.0f:%04d', now, first + j)
  end
  local err = failure(redis.pcall(unpack(args)))
  return err or nil
end

-- MAX_BACK bounds the units that set_back moves: a log holds at most 1,000 units, and
-- overdraws as many.
local MAX_BACK = 2000

-- set_back moves units with a score after now, written before the clock was set back, to
-- now.
local function set_back(k)
  local later = redis.pcall('ZRANGEBYSCORE', k, '(' .. text(now), '+inf', 'LIMIT', 0, MAX_BACK)
  if later.err or #later == 0 then
    return later.err
  end
  local err = failure(redis.pcall('ZREM', k, unpack(later)))
  return err or add(k, #later)
end

-- take_units takes the units of n checks from a bucket, for the holder and the time in
-- hold, see refund_settle.lua. It leaves no set without an expiry.
local function take_units(b, l, n, hold)
  local k = b.key
  local err = failure(redis.pcall('ZREMRANGEBYSCORE', k, '-inf', text(now - span(l))))
  if not err and b.rewritten then
    err = set_back(k)
  end
  if not err and n > 0 then
    if l.algorithm == SLIDING_LOG then
      err = add(k, n * l.cost)
    elseif not hold then
      err = 'LGHOLDER a slot needs a holder'
    else
      err = failure(redis.pcall('ZADD', k, text(now + hold.ttl * 1000), hold.by))
    end
  end
  if err then
    return err
  end
  err = arm(k, l)
  if err then
    redis.pcall('DEL', k)
  end
  return err
end

-- give_units removes units from a log that were taken at the time window, or the latest
-- ones if window is -1; or it removes the slot of a holder. It returns the number of
-- removed units, or an error text. Without a holder the slot has expired. If the clock was
-- set back since the units were taken, it removes the latest ones too: a check may have
-- moved all units to its own time.
local function give_units(k, l, units, window, holder)
  if l.algorithm == CONCURRENCY then
    local n = holder and redis.pcall('ZREM', k, holder) or 0
    return failure(n) or n
  end
  local from, to = text(window), text(window)
  if window == -1 or window > now then
    from, to = '-inf', '+inf'
  end
  local taken = redis.pcall('ZREVRANGEBYSCORE', k, to, from, 'LIMIT', 0, units)
  if taken.err or #taken == 0 then
    return taken.err or 0
  end
  local n = redis.pcall('ZREM', k, unpack(taken))
  return failure(n) or n
end

-- overdraw_units takes units from a log even if they do not fit: at most as many as overdraw it
-- by its capacity. The limit of the log may have a longer period by now than l: units that
-- have expired by the period of l stay, and so does a later expiry.
local function overdraw_units(k, l, units)
  local err = set_back(k)
  local used = err or redis.pcall('ZCOUNT', k, '(' .. text(now - span(l)), '+inf')
  err = err or failure(used)
  units = err and 0 or min(units, 2 * l.capacity - used)
  if units > 0 then
    local ttl = redis.pcall('PTTL', k)
    err = failure(ttl) or add(k, units)
    if not err and ttl * 1000 < span(l) then
      err = arm(k, l)
    end
  end
  return err
end

-- holds reports whether a holder has a slot.
local function holds(k, holder)
  local ends = redis.pcall('ZSCORE', k, holder)
  return type(ends) == 'string' and tonumber(ends) > now
end

-- renew extends a holder's slot to ttl from now, and reports whether it did.
local function renew(k, l, holder, ttl)
  return not failure(redis.pcall('ZADD', k, text(now + ttl * 1000), holder)) and not arm(k, l)
end

return {load = load_units, take = take_units, give = give_units, overdraw = overdraw_units, holds = holds, renew = renew}
