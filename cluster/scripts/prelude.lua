-- The part that every run of the script needs. Code that only some runs need is in texts
-- that make their functions at the first call, see script.go: Lua would make the functions
-- anew in each run, which costs more than most decisions.

local WRITE_FORMAT = 1 -- the format of new buckets
local time = redis.call('TIME') -- the only clock
local now = time[1] * 1000000 + time[2]

local TOKEN_BUCKET, SLIDING_WINDOW, FIXED_WINDOW, CALENDAR_WINDOW, SLIDING_LOG, CONCURRENCY = '1', '2', '3', '4', '5', '6'
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local pack, unpack_struct, sub = struct.pack, struct.unpack, string.sub

local EXACT = 9007199254740992 -- 2^53: up to here numbers are exact
local NO_STATE = 'LGFORMAT the bucket is in a format this release does not know'

-- The position of the next keys and arguments, and the replies so far.
local keys, key_at = KEYS, 0
local at = 1
if #KEYS == 0 then
  keys, key_at, at = ARGV, 1, tonumber(ARGV[1]) + 2
end

local out, n_out = {now}, 1

-- read_limit decodes the parameters of a limit and the cost of a call:
--   1 digit   algorithm
--   1 digit   flags: +1 the bucket is a field of the tenant's hash, +2 the limit
--             is enforced, +4 it is the same field for every tenant, namely f
--   5 doubles count, period, capacity, granule and cost
--   then      for calendar windows 4 doubles, the boundaries of three windows; for
--             token buckets "count/period/capacity;"
-- For a token bucket it also computes the constants for levels.
local function read_limit(text, f)
  local algorithm, flags = sub(text, 1, 1), tonumber(sub(text, 2, 2))
  local count, period, capacity, granule, cost, rest = unpack_struct('<ddddd', text, 3)
  local field, enforced, one_field = flags % 2 == 1, flags % 4 >= 2, flags >= 4 and f
  if algorithm == TOKEN_BUCKET then
    local prefix, full = '\1' .. sub(text, rest), capacity * period
    local levels = full < 4503599627370496
    return {
      algorithm = algorithm, field = field, enforced = enforced, one_field = one_field, cost = cost,
      count = count, period = period, capacity = capacity, granule = granule,
      full = full, levels = levels, need = cost * period, stamp = prefix .. pack('<d', now),
      -- A value of this prefix and two doubles can be decoded directly.
      sight = levels and WRITE_FORMAT == 1, prefix = prefix, head = #prefix, size = #prefix + 16
    }
  end
  return {
    algorithm = algorithm, field = field, enforced = enforced, one_field = one_field, cost = cost,
    count = count, period = period, capacity = capacity, granule = granule,
    bounds = algorithm == CALENDAR_WINDOW and {unpack_struct('<dddd', text, rest)}
  }
end

-- is_level reports whether a bucket can have had a level at the time last. Values that fail
-- this are left to general.lua.
local function is_level(l, last, level)
  return last >= 0 and last <= now and last % 1 == 0 and level <= l.full and level >= -l.full and level % 1 == 0
end

-- failure returns the error of a reply, or nil.
local function failure(reply)
  return type(reply) == 'table' and reply.err or nil
end

-- arm_hash makes a hash expire no earlier than at: it lives as long as the field that lives
-- longest. PTTL counts from a clock that may be a little behind, hence the slack.
local function arm_hash(key, at)
  local ttl = redis.pcall('PTTL', key)
  if failure(ttl) then
    return ttl
  elseif ttl < 0 then
    return redis.pcall('PEXPIREAT', key, string.format('%.0f', at))
  elseif now / 1000 + ttl < at + 2 then
    return redis.pcall('PEXPIREAT', key, string.format('%.0f', max(at, ceil(now / 1000) + ttl)))
  end
  return ttl
end

-- write stores the value of a bucket whose key may expire at the given ms. armed means that
-- the key has that expiry already. It returns an error text or nil.
local function write(key, field, value, at, armed)
  local reply
  if field then
    reply = redis.pcall('HSET', key, field, value)
    if not armed and not failure(reply) then
      reply = arm_hash(key, at)
      if failure(reply) then -- no key without an expiry
        redis.pcall('HDEL', key, field)
      end
    end
  elseif armed then
    reply = redis.pcall('SET', key, value, 'KEEPTTL')
  else
    reply = redis.pcall('SET', key, value, 'PXAT', string.format('%.0f', at))
  end
  return failure(reply)
end
