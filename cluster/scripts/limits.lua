-- The limits of calls that general.lua decides.

local TOKEN_BUCKET, SLIDING_WINDOW, FIXED_WINDOW, CALENDAR_WINDOW, SLIDING_LOG, CONCURRENCY = '1', '2', '3', '4', '5', '6'

local EXACT = 9007199254740992 -- 2^53: up to here numbers are exact
local NO_STATE = 'LGFORMAT the bucket is in a format this release does not know'

local check_of = {takes = 'take', peeks = 'peek'} -- the ops of calls that stand for several checks
local at, key_at, n_out = 1, 0, 1 -- as in prelude.lua, while these decide

local function base36(n)
  local text = ''
  repeat
    local digit = n % 36
    text = sub('0123456789abcdefghijklmnopqrstuvwxyz', digit + 1, digit + 1) .. text
    n = (n - digit) / 36
  until n == 0
  return text
end

-- params_text returns the parameters of a token bucket as the text of its field has them.
local function params_text(count, period, capacity)
  return '/' .. base36(count) .. '/' .. base36(period) .. '/' .. base36(capacity)
end

-- read_limit decodes the parameters of a limit and the cost of a call:
--   1 digit   algorithm
--   1 digit   flags, in base 36: +1 the bucket is a field of the tenant's string, +2 the
--             limit is enforced, +4 it is the same field for every tenant, namely f; +8 the
--             calls of the run have different keys; +16 the calls take or peek, and all
--             limits of the run are enforced token buckets with levels, or its only limit
--             is a fixed window with a key of its own
--   5 doubles count, period, capacity, granule and cost
--   then      for calendar windows 4 doubles, the boundaries of three windows; for
--             token buckets the parameters as their fields have them, see bucket.lua
-- For a token bucket it also computes the constants for levels.
local function read_limit(text, f)
  local algorithm, flags = sub(text, 1, 1), tonumber(sub(text, 2, 2), 36)
  local count, period, capacity, granule, cost, rest = unpack_struct('<ddddd', text, 3)
  local l = {
    algorithm = algorithm, field = flags % 2 == 1, enforced = flags % 4 >= 2, one_field = flags % 8 >= 4 and f,
    text = text,
    cost = cost, count = count, period = period, capacity = capacity, granule = granule
  }
  if algorithm == TOKEN_BUCKET then
    l.full, l.need, l.params = capacity * period, cost * period, sub(text, rest)
    l.levels = l.full < 4503599627370496
    if sub(l.params, 1, 1) ~= '/' then -- from a record of the release before
      l.params = params_text(count, period, capacity)
    end
  elseif algorithm == CALENDAR_WINDOW then
    l.bounds = {unpack_struct('<dddd', text, rest)}
  end
  return l
end

-- read_limits returns the limits of the run that begins at the argument run, and the position
-- of the arguments of its first call.
local function read_limits(run)
  local limits, next_arg = {}, run + 3
  for i = 1, tonumber(ARGV[run + 1]) do
    limits[i] = read_limit(ARGV[next_arg], ARGV[next_arg + 1])
    next_arg = next_arg + (limits[i].one_field and 2 or 1)
  end
  return limits, next_arg
end
