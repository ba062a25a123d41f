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
-- States are stored in two formats. In format 3 a string holds all buckets of a tenant that
-- are fields, or a token bucket with a key of its own, which is a field of an empty name:
--   the numbers of the fields, one after the other, as little-endian doubles
--     of a window the six numbers, of a token bucket last and level, or last, content and
--     remainder
--   a text of each field: its name, "}", how many doubles are before its own unless none, and
--     "/count/period/capacity" in base 36 if it is a token bucket; ";"
--   the number of doubles in two bytes, little-endian; and the byte 3
-- In format 1, which windows with a key of their own have, a state is the byte 1 and the six
-- numbers as doubles; token buckets have "count/period/capacity;" in front of the numbers
-- that they have in format 3. The fields of a hash have it: a tenant has a hash in place of
-- its string if there are many, see hashes.lua. The release before this one writes only
-- format 1, and updates buckets that have format 3. This release moves buckets to format 3
-- when it writes them.

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

-- MAX_VALUE is longer, in bytes, than any state in format 1.
local MAX_VALUE = 256

-- token_state returns the state of a token bucket from the numbers at an offset of a value,
-- which has as many bytes of numbers as size.
local function token_state(raw, offset, size, count, period, capacity)
  if not (count and period and capacity) or period == 0 then
    return nil
  elseif capacity * period < 4503599627370496 then
    if size >= 16 then
      local last, level = unpack_struct('<dd', raw, offset + 1)
      local content = floor(level / period)
      return {content, level - content * period, last, count, period, capacity}
    end
  elseif size >= 24 then
    local last, content, remainder = unpack_struct('<ddd', raw, offset + 1)
    return {content, remainder, last, count, period, capacity}
  end
  return nil
end

local function window_state(raw, offset)
  local a, b, c, d, e, f = unpack_struct('<dddddd', raw, offset + 1)
  return {a, b, c, d, e, f}
end

-- params_of returns the parameters in the text of a field as numbers.
local function params_of(params)
  local count, period, capacity = string.match(params, '^/(%w+)/(%w+)/(%w+)$')
  return tonumber(count or '-', 36), tonumber(period or '-', 36), tonumber(capacity or '-', 36)
end

-- unpack_field returns the state of a field, nil if there is no such field, or false if it
-- is none that the limit can have. The value has n bytes of numbers and then a text.
local function unpack_field(l, raw, n, text, name)
  local offset, params = find_field(text, name)
  if not params then
    return nil
  elseif l.algorithm == TOKEN_BUCKET then
    return offset <= n and token_state(raw, offset, n - offset, params_of(params)) or false
  end
  return offset + 48 <= n and window_state(raw, offset)
end

-- unpack_old returns the state in a value of format 1.
local function unpack_old(l, raw)
  if #raw > MAX_VALUE or byte(raw) ~= 1 then
    return nil
  elseif l.algorithm == TOKEN_BUCKET then
    local count, period, capacity, first = string.match(raw, '^(%d+)/(%d+)/(%d+);()', 2)
    return count and token_state(raw, first - 1, #raw - first + 1, tonumber(count), tonumber(period), tonumber(capacity))
  end
  return #raw == 49 and window_state(raw, 1) or nil
end

-- numbers_of returns the numbers of a state as they are stored.
local function numbers_of(l, s)
  if l.algorithm ~= TOKEN_BUCKET then
    return pack('<dddddd', s[1], s[2], s[3], s[4], s[5], s[6])
  elseif l.levels then
    return pack('<dd', s[3], s[1] * l.period + s[2])
  end
  return pack('<ddd', s[3], s[1], s[2])
end

-- joined returns a string of fields.
local function joined(numbers, names, params)
  local n, texts = 0, {}
  for i = 1, #numbers do
    texts[i] = names[i] .. '}' .. (n > 0 and n / 8 or '') .. params[i] .. ';'
    n = n + #numbers[i]
  end
  return table.concat(numbers) .. table.concat(texts) .. string.char(n / 8 % 256, floor(n / 2048), 3)
end

local function pack_old(l, s)
  local params = l.algorithm == TOKEN_BUCKET and string.format('%.0f/%.0f/%.0f;', l.count, l.period, l.capacity) or ''
  return '\1' .. params .. numbers_of(l, s)
end

local function set(key, value, at)
  if at then
    return failure(redis.pcall('SET', key, value, 'PXAT', string.format('%.0f', at)))
  end
  return failure(redis.pcall('SET', key, value, 'KEEPTTL'))
end

-- The value that was read last, until something is written: its length in bytes of numbers
-- and its text, if it is a string of fields.
local read_key, read_raw, read_n, read_text

-- read returns the value of a key, with that length and text.
local function read(key)
  if key ~= read_key then
    read_key, read_raw = key, redis.pcall('GET', key)
    read_n = read_raw and not read_raw.err and doubles_of(read_raw)
    read_text = read_n and sub(read_raw, read_n + 1)
  end
  return read_raw, read_n, read_text
end

-- INSERT hashes

-- fetch returns the stored state of a bucket, nil if there is none, or nil and an error text.
local function fetch(l, key, field)
  local raw, n, text = read(key)
  if not raw then
    return nil
  end
  local s
  if n then
    s = unpack_field(l, raw, n, text, field or '')
    if s == nil and field then
      return nil
    end
  elseif field then
    return hashes().fetch(l, key, field, raw)
  elseif raw.err then
    return nil, raw.err
  else
    s = unpack_old(l, raw)
  end
  if is_state(l, s) then
    return s
  end
  return nil, NO_STATE
end

-- put_field stores a field in a tenant's string. Its arguments and results are those of put.
local function put_field(l, key, field, s, at)
  local raw, n, text = read(key)
  if not n and (raw or WRITE_FORMAT == 1 or #field > MAX_NAME) then
    return hashes().put(l, key, field, s, at, raw)
  end
  local params, numbers = l.params or '', numbers_of(l, s)
  if not raw then
    return set(key, joined({numbers}, {field}, {params}), at)
  end
  local err, offset, was = at and arm(key, at), find_field(text, field)
  if err then
    return err
  elseif was == params then
    return failure(redis.pcall('SETRANGE', key, offset, numbers))
  end
  return hashes().add(l, key, field, s, at, raw)
end

-- put stores a state in a key that may expire at the given ms, or if that is nil, when it
-- does already. It returns an error text or nil.
local function put(l, key, field, s, at)
  local err
  if field then
    err = put_field(l, key, field, s, at)
  elseif l.algorithm ~= TOKEN_BUCKET or WRITE_FORMAT == 1 and not select(2, read(key)) then
    err = set(key, pack_old(l, s), at)
  else
    err = set(key, joined({numbers_of(l, s)}, {''}, {l.params}), at)
  end
  read_key = nil
  return err
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

-- save stores a state, or deletes the bucket if the state is equivalent to none. It returns
-- an error text or nil.
local function save(l, key, field, s, armed)
  local at = expires_at(l, s)
  if at * 1000 > now then
    return put(l, key, field, s, not armed and at or nil)
  end
  read_key = nil
  if not field then
    return failure(redis.pcall('DEL', key))
  end
  local removed = hashes().remove(key, function(name) return name ~= field end)
  return type(removed) == 'string' and removed or nil
end
