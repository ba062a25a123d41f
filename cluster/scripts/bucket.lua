-- The state of a bucket, its maths and its storage. This is the twin of package limit: the
-- same states, the same results to the unit. The algorithms are described there. The
-- scripts decide which units are taken; the proxy computes the values shown to clients
-- (units left, waits) from the states in the reply.
--
-- A state is six numbers:
--   token bucket:  content, remainder, last, count, period, capacity
--   windows:       start, end, used, prev, carry, carry_end
-- Times are microseconds since the Unix epoch, amounts are units. Every number is an
-- integer below 2^53, up to which Lua's numbers are exact.
--
-- If capacity*period is below 2^52, content and remainder are one number, the level:
-- content*period + remainder. In a level a unit is period, a microsecond adds count, and a
-- decision is one comparison and one subtraction.
--
-- A state is stored as one byte that names the format, followed by
--   format 1: windows: the six numbers
--             token buckets: "count/period/capacity;", then last and level, or
--             last, content and remainder
--             numbers after the text are little-endian doubles
--   format 2: the six numbers as a MessagePack array
-- A bucket in a later format than this release writes stays in that format, so that two
-- releases can run side by side during an upgrade.

-- muldiv returns x*m/w rounded down, and the remainder. If the product could exceed 2^52 it
-- divides digit by digit, in the largest base that keeps every step below that.
local function muldiv(x, m, w)
  local product = x * m
  if product < 4503599627370496 then
    local rem = product % w
    return (product - rem) / w, rem
  end
  local _, bits = math.frexp(max(m, w))
  local base = max(2, 2 ^ (51 - bits)) -- or it would never end
  local digits, n = {}, 0
  while x > 0 do
    local digit = x % base
    n = n + 1
    digits[n] = digit
    x = (x - digit) / base
  end
  local quo, rem = 0, 0
  for i = n, 1, -1 do
    local part = rem * base + digits[i] * m
    rem = part % w
    quo = quo * base + (part - rem) / w
  end
  return quo, rem
end

local function muldiv_ceil(x, m, w)
  local quo, rem = muldiv(x, m, w)
  if rem > 0 then
    return quo + 1
  end
  return quo
end

-- Token bucket ---------------------------------------------------------------

local function token_full_in(s)
  local missing = s[6] - s[1]
  if missing <= 0 then
    return 0
  end
  local quo, rem = muldiv(missing, s[5], s[4])
  return quo - floor((s[2] - rem) / s[4])
end

local function token_enter(l, state)
  if not state then
    return {l.capacity, 0, now, l.count, l.period, l.capacity}, false
  end
  local s = {state[1], state[2], state[3], state[4], state[5], state[6]}
  local rewritten = false
  local elapsed = now - s[3]
  if elapsed < 0 then
    rewritten = true
  elseif elapsed >= token_full_in(s) then
    s[1], s[2] = max(s[1], s[6]), 0
  else
    local units, rem = muldiv(elapsed, s[4], s[5])
    rem = rem + s[2]
    if rem >= s[5] then
      units, rem = units + 1, rem - s[5]
    end
    s[1], s[2] = s[1] + units, rem
  end
  s[3] = now
  if s[4] ~= l.count or s[5] ~= l.period or s[6] ~= l.capacity then
    rewritten = true
    s[2] = muldiv(s[2], l.period, s[5])
    -- A full bucket is equivalent to an untouched one: its key may have expired already.
    if s[1] >= min(l.capacity, s[6]) then
      s[1], s[2] = l.capacity, 0
    end
    s[4], s[5], s[6] = l.count, l.period, l.capacity
  end
  if s[1] < -l.capacity then -- it can owe no more
    s[1], s[2], rewritten = -l.capacity, 0, true
  end
  return s, rewritten
end

-- Windows --------------------------------------------------------------------

local function carry_window(s, used, finish)
  local carry, carry_end = s[5], s[6]
  if s[1] > now then
    local back = s[1] - now
    finish = finish - back
    carry_end = carry_end - back
  end
  if carry_end <= now then
    carry, carry_end = 0, 0
  end
  if used > 0 then
    carry, carry_end = carry + used, max(carry_end, finish)
  end
  s[5], s[6] = carry, carry_end
end

-- fixed_enter returns nil if now lies outside the boundaries of the calendar windows that
-- the proxy sent.
local function fixed_enter(l, state)
  local start = now - now % l.period
  local finish = start + l.period
  if l.bounds then
    start = nil
    for i = 1, 3 do
      if l.bounds[i] <= now and now < l.bounds[i + 1] then
        start, finish = l.bounds[i], l.bounds[i + 1]
      end
    end
    if not start then
      return nil
    end
  end
  if not state then
    return {start, finish, 0, 0, 0, 0}, false
  end
  local s = {state[1], state[2], state[3], state[4], state[5], state[6]}
  local rewritten = false
  if s[1] ~= start or s[2] ~= finish then
    if s[2] > now and s[3] + s[5] > 0 then
      carry_window(s, s[3], s[2])
      rewritten = true
    end
    s[1], s[2], s[3], s[4] = start, finish, 0, 0
  end
  if s[6] <= now then
    s[5], s[6] = 0, 0
  end
  return s, rewritten
end

local function fixed_expires(s)
  if s[3] == 0 then
    return s[6]
  end
  return max(s[2], s[6])
end

local function sliding_weight(s)
  if s[4] == 0 then
    return 0
  end
  return muldiv_ceil(s[4], s[2] - now, s[2] - s[1])
end

local function sliding_move(s, period)
  if now < s[2] then
    return
  end
  if now < s[2] + period then
    s[4], s[3] = s[3], 0
    s[1], s[2] = s[2], s[2] + period
  else
    s[4], s[3] = 0, 0
    s[1] = now - now % period
    s[2] = s[1] + period
  end
end

local function sliding_enter(l, state)
  local start = now - now % l.period
  if not state then
    return {start, start + l.period, 0, 0, 0, 0}, false
  end
  local s = {state[1], state[2], state[3], state[4], state[5], state[6]}
  local rewritten = false
  local old = s[2] - s[1]
  if s[1] > now then
    carry_window(s, s[3] + s[4], s[2])
    s[1], s[2], s[3], s[4] = start, start + l.period, 0, 0
    rewritten = true
  else
    sliding_move(s, old)
    if old ~= l.period then
      carry_window(s, s[3] + sliding_weight(s), s[2])
      s[1], s[2], s[3], s[4] = start, start + l.period, 0, 0
      rewritten = s[5] > 0
    end
  end
  if s[6] <= now then
    s[5], s[6] = 0, 0
  end
  return s, rewritten
end

local function sliding_expires(s)
  if s[3] > 0 then
    return max(s[6], 2 * s[2] - s[1])
  elseif s[4] > 0 then
    return max(s[6], s[2])
  end
  return s[6]
end

-- Any algorithm --------------------------------------------------------------

-- enter brings a stored state, or none, to now and to the limit l. Its second result
-- reports whether the state must be stored even if nothing is taken.
local function enter(l, state)
  if l.algorithm == TOKEN_BUCKET then
    return token_enter(l, state)
  elseif l.algorithm == SLIDING_WINDOW then
    return sliding_enter(l, state)
  end
  return fixed_enter(l, state)
end

-- room returns the number of units left in s.
local function room(l, s)
  if l.algorithm == TOKEN_BUCKET then
    return s[1]
  elseif l.algorithm == SLIDING_WINDOW then
    return l.capacity - s[3] - s[5] - sliding_weight(s)
  end
  return l.capacity - s[3] - s[5]
end

local function charge(l, s, units)
  if l.algorithm == TOKEN_BUCKET then
    s[1] = s[1] - units
  else
    s[3] = s[3] + units
  end
end

-- Storing --------------------------------------------------------------------

-- is_state reports whether s is six numbers that the maths of the limit can handle: a value
-- written by another program must neither keep the server busy nor produce numbers that
-- cannot be replied.
local function is_state(l, s)
  if type(s) ~= 'table' or #s ~= 6 then
    return false
  end
  for i = 1, 6 do
    local n = s[i]
    if type(n) ~= 'number' or n ~= floor(n) or n > 2 ^ 52 or n < -2 ^ 52 then
      return false
    end
  end
  if l.algorithm == TOKEN_BUCKET then
    return s[1] <= s[6] and s[2] >= 0 and s[2] < s[5] and s[3] >= 0 and s[4] >= 1 and s[4] <= 2 ^ 46 and s[5] <= 2 ^ 46 and s[6] >= 1
  end
  return s[1] >= 0 and s[2] > s[1] and s[3] >= 0 and s[4] >= 0 and s[5] >= 0 and s[6] >= 0 and max(s[2] - s[1], s[3], s[4], s[5]) <= 2 ^ 46
end

-- MAX_VALUE is longer, in bytes, than any stored state.
local MAX_VALUE = 256

local function unpack_tokens(raw)
  local count, period, capacity, at = string.match(raw, '^(%d+)/(%d+)/(%d+);()', 2)
  if not count then
    return nil
  end
  count, period, capacity = tonumber(count), tonumber(period), tonumber(capacity)
  if #raw == at + 15 and period > 0 then
    local last, level = unpack_struct('<dd', raw, at)
    local content = floor(level / period)
    return {content, level - content * period, last, count, period, capacity}
  elseif #raw == at + 23 then
    local last, content, remainder = unpack_struct('<ddd', raw, at)
    return {content, remainder, last, count, period, capacity}
  end
  return nil
end

local function unpack_state(l, raw)
  local format, s = string.byte(raw), nil
  if #raw > MAX_VALUE then
    return nil, nil
  elseif format == 1 and l.algorithm == TOKEN_BUCKET then
    s = unpack_tokens(raw)
  elseif format == 1 and #raw == 49 then
    local _, a, b, c, d, e, f = unpack_struct('<Bdddddd', raw)
    s = {a, b, c, d, e, f}
  elseif format == 2 then
    local ok, numbers = pcall(cmsgpack.unpack, sub(raw, 2))
    s = ok and numbers
  end
  if is_state(l, s) then
    return s, format
  end
  return nil, nil
end

local function pack_state(l, s, format)
  if max(format, WRITE_FORMAT) == 2 then
    return '\2' .. cmsgpack.pack(s)
  elseif l.algorithm ~= TOKEN_BUCKET then
    return pack('<Bdddddd', 1, s[1], s[2], s[3], s[4], s[5], s[6])
  elseif l.levels then
    return l.prefix .. pack('<dd', s[3], s[1] * l.period + s[2])
  end
  return l.prefix .. pack('<ddd', s[3], s[1], s[2])
end

-- level_due returns the granule in which a bucket becomes full that had the level at the
-- time last.
local function level_due(l, last, level)
  return floor((last + (l.full - level) / l.count) / l.granule)
end

-- expires_at returns the time in ms at which the key of a state of limit l may expire. That
-- of a token bucket is rounded up to a granule, so that most calls find the expiry already
-- correct.
local function expires_at(l, s)
  if l.levels then
    return (level_due(l, s[3], s[1] * l.period + s[2]) + 1) * l.granule / 1000
  elseif l.algorithm == TOKEN_BUCKET then
    return (floor((s[3] + token_full_in(s)) / l.granule) + 1) * l.granule / 1000
  elseif l.algorithm == SLIDING_WINDOW then
    return ceil(sliding_expires(s) / 1000)
  end
  return ceil(fixed_expires(s) / 1000)
end

-- fetch reads the value of a bucket.
local function fetch(key, field)
  if field then
    return redis.pcall('HGET', key, field)
  end
  return redis.pcall('GET', key)
end

-- save stores a state, or deletes the bucket if the state is equivalent to none. It returns
-- an error text or nil.
local function save(l, key, field, s, format, armed)
  local at = expires_at(l, s)
  if at * 1000 > now then
    return write(key, field, pack_state(l, s, format), at, armed)
  elseif field then
    return failure(redis.pcall('HDEL', key, field))
  end
  return failure(redis.pcall('DEL', key))
end
