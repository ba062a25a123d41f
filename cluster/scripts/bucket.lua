-- What a bucket is: its state, its maths and how it is kept. This text stands
-- before each of the scripts that use it. It is the twin of package limit:
-- the same states, the same results to the unit. What is said there of the
-- algorithms is not said again here.
--
-- A state is six numbers:
--   token bucket:  content, remainder, last, count, period, capacity
--   windows:       start, end, used, prev, carry, carry_end
-- Instants are microseconds since the Unix epoch, amounts are units. Every
-- number is a whole one below 2^53, up to which Lua's numbers are exact.
--
-- A state is stored as one byte that names the format, followed by
--   format 1: the six numbers as little-endian doubles
--   format 2: the six numbers as a MessagePack array
-- A bucket found in a later format than this release writes goes on in it, so
-- that releases can be mixed while one replaces the other.

local WRITE_FORMAT = 1 -- the format of new buckets
local time = redis.call('TIME') -- the only clock
local now = time[1] * 1000000 + time[2]

local TOKEN_BUCKET, SLIDING_WINDOW, FIXED_WINDOW, CALENDAR_WINDOW = 1, 2, 3, 4
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

-- muldiv returns x*m/w rounded down, and the remainder. Where the product
-- could exceed 2^52 it divides digit by digit, in the largest base that keeps
-- every step below that.
local function muldiv(x, m, w)
  local product = x * m
  if product < 4503599627370496 then
    local rem = product % w
    return (product - rem) / w, rem
  end
  local _, bits = math.frexp(max(m, w))
  local base = 2 ^ (51 - bits)
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

local function ceil_millis(micros)
  if micros <= 0 then
    return 0
  end
  return ceil(micros / 1000)
end

-- Token bucket ---------------------------------------------------------------

local function token_reaches(s, units)
  local missing = units - s[1]
  if missing <= 0 then
    return 0
  end
  local quo, rem = muldiv(missing, s[5], s[4])
  return quo - floor((s[2] - rem) / s[4])
end

local function token_full_in(s)
  return token_reaches(s, s[6])
end

local function token_refill(p, s)
  if not s then
    return {p.capacity, 0, now, p.count, p.period, p.capacity}, false
  end
  s = {s[1], s[2], s[3], s[4], s[5], s[6]}
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
  if s[4] ~= p.count or s[5] ~= p.period or s[6] ~= p.capacity then
    rewritten = true
    s[2] = muldiv(s[2], p.period, s[5])
    if s[1] >= p.capacity then
      s[1], s[2] = p.capacity, 0
    end
    s[4], s[5], s[6] = p.count, p.period, p.capacity
  end
  return s, rewritten
end

local function token_decide(p, state, cost)
  local s, rewritten = token_refill(p, state)
  local r = {state = s, rewritten = rewritten, allowed = 0, wait = 0, window = 0}
  if cost > p.capacity then
    r.wait = -1
  elseif cost <= s[1] then
    r.allowed = 1
    s[1] = s[1] - cost
  else
    r.wait = ceil_millis(token_reaches(s, cost))
  end
  r.remaining = max(0, s[1])
  r.reset = ceil_millis(token_full_in(s))
  return r
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

local function fixed_enter(state, start, finish)
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

local function fixed_fits(room, s)
  local at = max(s[2], s[6])
  if s[3] <= room then
    at = min(at, s[6])
  end
  if s[5] <= room then
    at = min(at, s[2])
  end
  return at
end

local function fixed_expires(s)
  if s[3] == 0 then
    return s[6]
  end
  return max(s[2], s[6])
end

local function fixed_decide(p, state, cost, start, finish)
  local s, rewritten = fixed_enter(state, start, finish)
  local r = {state = s, rewritten = rewritten, allowed = 0, wait = 0, window = start}
  if cost > p.capacity then
    r.wait = -1
  elseif s[3] + s[5] + cost <= p.capacity then
    r.allowed = 1
    s[3] = s[3] + cost
  else
    r.wait = ceil_millis(fixed_fits(p.capacity - cost, s) - now)
  end
  r.remaining = max(0, p.capacity - s[3] - s[5])
  r.reset = ceil_millis(fixed_expires(s) - now)
  return r
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

local function sliding_enter(p, state)
  local start = now - now % p.period
  if not state then
    return {start, start + p.period, 0, 0, 0, 0}, false
  end
  local s = {state[1], state[2], state[3], state[4], state[5], state[6]}
  local rewritten = false
  local old = s[2] - s[1]
  if s[1] > now then
    carry_window(s, s[3] + s[4], s[2])
    s[1], s[2], s[3], s[4] = start, start + p.period, 0, 0
    rewritten = true
  else
    sliding_move(s, old)
    if old ~= p.period then
      carry_window(s, s[3] + sliding_weight(s), s[2])
      s[1], s[2], s[3], s[4] = start, start + p.period, 0, 0
      rewritten = s[5] > 0
    end
  end
  if s[6] <= now then
    s[5], s[6] = 0, 0
  end
  return s, rewritten
end

local function sliding_fits_alone(room, s)
  local period = s[2] - s[1]
  local spare = room - s[3]
  if spare >= 0 then
    if spare >= s[4] then
      return now
    end
    local left = muldiv(spare, period, s[4])
    if left > 0 then
      return max(now, s[2] - left)
    end
  end
  if room >= s[3] then
    return s[2]
  end
  return s[2] + period - muldiv(room, period, s[3])
end

local function sliding_fits(room, s)
  if s[5] == 0 then
    return sliding_fits_alone(room, s)
  end
  local at = max(s[6], sliding_fits_alone(room, s))
  if s[5] <= room then
    at = min(at, sliding_fits_alone(room - s[5], s))
  end
  return at
end

local function sliding_expires(s)
  if s[3] > 0 then
    return max(s[6], 2 * s[2] - s[1])
  elseif s[4] > 0 then
    return max(s[6], s[2])
  end
  return s[6]
end

local function sliding_decide(p, state, cost)
  local s, rewritten = sliding_enter(p, state)
  local r = {state = s, rewritten = rewritten, allowed = 0, wait = 0, window = s[1]}
  local used = s[3] + s[5] + sliding_weight(s)
  if cost > p.capacity then
    r.wait = -1
  elseif used + cost <= p.capacity then
    r.allowed = 1
    s[3] = s[3] + cost
    used = used + cost
  else
    r.wait = ceil_millis(sliding_fits(p.capacity - cost, s) - now)
  end
  r.remaining = max(0, p.capacity - used)
  r.reset = ceil_millis(sliding_expires(s) - now)
  return r
end

-- Storing --------------------------------------------------------------------

-- read_params decodes what a call says of a limit:
--   1 byte   algorithm
--   1 byte   flags: +1 the bucket is a field of the hash KEYS[1],
--            +2 the limit is enforced
--   4 doubles  count, period, capacity, granule of the expiry
--   4 doubles  the boundaries of three windows, for calendar windows only
local function read_params(blob)
  local p = {}
  local flags, next
  p.algorithm, flags, p.count, p.period, p.capacity, p.granule, next = struct.unpack('<BBdddd', blob)
  p.field = flags % 2 == 1
  p.enforced = flags >= 2
  if p.algorithm == CALENDAR_WINDOW then
    p.bounds = {struct.unpack('<dddd', blob, next)}
  end
  return p
end

-- is_state reports whether s is six numbers that the maths can take: a value
-- that somebody else wrote must not keep the server busy for ever.
local function is_state(s)
  if type(s) ~= 'table' or #s ~= 6 then
    return false
  end
  for i = 1, 6 do
    local n = s[i]
    if type(n) ~= 'number' or n ~= floor(n) or n > 2 ^ 52 or n < -2 ^ 52 then
      return false
    end
  end
  return s[4] <= 2 ^ 46 and s[5] <= 2 ^ 46
end

local function unpack_state(raw)
  local format, s = string.byte(raw), nil
  if format == 1 and #raw == 49 then
    local _, a, b, c, d, e, f = struct.unpack('<Bdddddd', raw)
    s = {a, b, c, d, e, f}
  elseif format == 2 then
    s = cmsgpack.unpack(string.sub(raw, 2))
  end
  if is_state(s) then
    return s, format
  end
  return nil, nil
end

local function pack_state(s, format)
  if max(format, WRITE_FORMAT) == 2 then
    return string.char(2) .. cmsgpack.pack(s)
  end
  return struct.pack('<Bdddddd', 1, s[1], s[2], s[3], s[4], s[5], s[6])
end

-- expires_at returns the instant in ms at which the key of a state may go. A
-- token bucket's is rounded up to a granule, so that most calls find it right.
local function expires_at(p, s)
  if p.algorithm == TOKEN_BUCKET then
    local full = s[3] + token_full_in(s)
    return (floor(full / p.granule) + 1) * p.granule / 1000
  elseif p.algorithm == SLIDING_WINDOW then
    return ceil(sliding_expires(s) / 1000)
  end
  return ceil(fixed_expires(s) / 1000)
end

-- load reads the bucket of each item: item.p and item.field are given,
-- item.key, item.stored and item.format are set. KEYS holds the hash first, if
-- any bucket is a field of it, then the buckets that are keys of their own, in
-- the order of the items. It returns an error reply when a state is in a format
-- that this release does not know.
local function load(items)
  local own = 0
  for i = 1, #items do
    if items[i].p.field then
      own = 1
    end
  end
  for i = 1, #items do
    local item = items[i]
    if item.p.field then
      item.key = KEYS[1]
    else
      own = own + 1
      item.key = KEYS[own]
    end
    local raw
    if item.p.field then
      raw = redis.call('HGET', item.key, item.field)
    else
      raw = redis.call('GET', item.key)
    end
    item.format = 0
    if raw then
      item.stored, item.format = unpack_state(raw)
      if not item.stored then
        return redis.error_reply('LGFORMAT the bucket is in a format this release does not know: ' .. item.key)
      end
    end
  end
  return nil
end

-- save stores item.state. The key gets an expiry in the command that creates
-- it, and another one only when that has changed. A state that means the same
-- as none is forgotten.
local function save(item)
  local value = pack_state(item.state, item.format)
  local at = expires_at(item.p, item.state)
  if at * 1000 <= now then
    if item.p.field then
      redis.call('HDEL', item.key, item.field)
    else
      redis.call('DEL', item.key)
    end
    return
  end
  local armed = item.stored and not item.rewritten and expires_at(item.p, item.stored) == at
  if not item.p.field then
    if armed then
      redis.call('SET', item.key, value, 'KEEPTTL')
    else
      redis.call('SET', item.key, value, 'PXAT', string.format('%.0f', at))
    end
    return
  end
  redis.call('HSET', item.key, item.field, value)
  if armed then
    return
  end
  -- The hash lives as long as the longest-lived of its fields. PTTL counts
  -- from a clock that may be a little behind, hence the slack.
  local ttl = redis.call('PTTL', item.key)
  if ttl < 0 then
    redis.call('PEXPIREAT', item.key, string.format('%.0f', at))
  elseif now / 1000 + ttl < at + 2 then
    redis.call('PEXPIREAT', item.key, string.format('%.0f', max(at, ceil(now / 1000) + ttl)))
  end
end
