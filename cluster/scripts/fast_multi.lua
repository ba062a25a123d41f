-- Calls with token buckets with levels, several of them or in strings of several fields. They
-- are decided as in general.lua, in half of the time; values that cannot be decoded directly
-- are left to general.lua. The fields of the tenant's string are read and written together.

local raws, written = {}, {} -- the values of the keys of the run, and the keys that were written since
local tenant, raw, is_hash -- the tenant's key, and its string or a hash with too many fields for one
local text, text_at = '', 1 -- the text of its fields, and where it begins
local offsets, known = {}, {} -- where its fields are, by name; and those by text
local stamp = pack('<d', now)

-- read_limits decodes the limits of the run that begins at the argument run. It returns them,
-- the position of the next arguments, and the number of those that are fields. The last
-- seven values of a limit are of its bucket in the current call: its name, key and value;
-- where its numbers are, its level, when it is full, and that to be written.
local function read_limits(run)
  local limits, next_arg, n_fields = {}, run + 3, 0
  for i = 1, tonumber(ARGV[run + 1]) do
    local flags = tonumber(sub(ARGV[next_arg], 2, 2), 36)
    local count, period, capacity, granule, cost, rest = unpack_struct('<ddddd', ARGV[next_arg], 3)
    local params, one_field = sub(ARGV[next_arg], rest), flags % 8 >= 4
    limits[i] = {
      field = flags % 2 == 1, one_field = one_field, count = count, granule = granule, full = capacity * period,
      need = cost * period, params = params, lone = '}' .. params .. ';\2\0\3', old = false,
      name = one_field and ARGV[next_arg + 1] or '', key = '', raw = '', place = 0, has = 0, due = 0, numbers = ''
    }
    next_arg = next_arg + (one_field and 2 or 1)
    n_fields = n_fields + flags % 2
  end
  return limits, next_arg, n_fields
end

-- read returns the value of a key, the i'th of the run. If they are declared read_all has
-- read them all; but a key has no value there if that has to be read by itself, such as one
-- that is no string.
local function read(k, i)
  if not raws[i] or written[k] then
    return redis.pcall('GET', k)
  end
  return raws[i]
end

-- read_tenant reads the tenant's string, the i'th key of the run. It reports whether the
-- string can be decoded directly.
local function read_tenant(k, i)
  tenant, raw, is_hash = k, read(k, i), false
  if not raw or not raw.err and sub(raw, text_at) == text then
    return true
  elseif raw.err then
    local n = sub(raw.err, 1, 9) == 'WRONGTYPE' and redis.pcall('HLEN', k)
    is_hash = type(n) == 'number' and n > MAX_FIELDS
    return is_hash
  end
  local n = doubles_of(raw)
  if not n then
    return false
  end
  text, text_at = sub(raw, n + 1), n + 1
  offsets = known[text]
  if not offsets then
    offsets = {}
    known[text] = offsets
  end
  return true
end

-- place_of returns where the numbers of the bucket of a limit are in the tenant's string, or
-- false if they cannot be decoded directly.
local function place_of(l)
  local at, params = find_field(text, l.name)
  at = at and params == l.params and at + 16 < text_at and at or false
  offsets[l.name] = at
  return at
end

-- read_hash reads the bucket of a limit in the tenant's hash. It returns the value, and
-- where the numbers are in it or false if they cannot be decoded directly.
local function read_hash(l)
  if not l.old then
    local count, period, capacity = string.match(l.params, '/(%w+)/(%w+)/(%w+)')
    l.old = string.format('\1%.0f/%.0f/%.0f;', tonumber(count, 36), tonumber(period, 36), tonumber(capacity, 36))
  end
  local value, head = redis.pcall('HGET', tenant, l.name), #l.old
  return value, value and #value == head + 16 and sub(value, 1, head) == l.old and head
end

-- read_levels reads the buckets of a call. It returns how many of n checks fit and the
-- position of the next arguments, or nil if a value cannot be decoded directly.
local function read_levels(limits, n, first, next_key, i_key)
  local now = now
  for i = 1, #limits do
    local l, from, place = limits[i], raw, 0
    if not l.field then
      next_key, i_key = next_key + 1, i_key + 1
      l.key = keys[next_key]
      from = read(l.key, i_key)
      l.raw = from
      if from and (from.err or sub(from, 17) ~= l.lone) then
        return nil
      end
    else
      if not l.one_field then
        l.name, first = ARGV[first], first + 1
      end
      if is_hash then
        from, place = read_hash(l)
      else
        place = offsets[l.name]
      end
    end
    local full = l.full
    local level, due = full, 0
    if l.field and not from and #l.name > MAX_NAME then
      return nil
    end
    if from then
      place = place or place == nil and place_of(l)
      if not place then
        return nil
      end
      local last, was = unpack_struct('<dd', from, place + 1)
      if not (last >= 0 and last <= now and last % 1 == 0 and was <= full and was >= -full and was % 1 == 0) then
        return nil
      end
      due = last + (full - was) / l.count
      due = due - due % l.granule
      was = was + (now - last) * l.count
      if was < full then
        level = was
      end
    end
    l.has, l.due, l.place = level, due, place
    if level < n * l.need then
      n = floor(level / l.need)
    end
  end
  return n, first
end

-- write_string stores the numbers of the fields in the tenant's string, which must not
-- expire before at, in ms; 0 if it does not. It returns an error text or nil.
local function write_string(limits, at)
  local values, texts, n = {}, {}, 0
  for i = 1, #limits do
    local l = limits[i]
    if l.field then
      n = n + 1
      values[n], texts[n] = l.numbers, l.name .. '}' .. (n > 1 and 2 * n - 2 or '') .. l.params .. ';'
    end
  end
  written[tenant] = true
  if raw then
    local err = at > 0 and arm(tenant, at) or nil
    for i = 1, #limits do
      err = err or limits[i].field and failure(redis.pcall('SETRANGE', tenant, limits[i].place, limits[i].numbers))
    end
    return err or nil
  end
  local new = table.concat(values) .. table.concat(texts) .. string.char(2 * n % 256, floor(n / 128), 3)
  return failure(redis.pcall('SET', tenant, new, 'PXAT', string.format('%.0f', at)))
end

-- write_hash does the same in the tenant's hash.
local function write_hash(limits, at)
  local err = at > 0 and arm(tenant, at) or nil
  for i = 1, #limits do
    local l = limits[i]
    err = err or l.field and failure(redis.pcall('HSET', tenant, l.name, l.old .. l.numbers)) or nil
  end
  return err
end

-- charge takes n checks from every bucket. It returns an error text or nil.
local function charge(limits, n)
  local at, err, from, numbers, adjacent = 0, nil, nil, nil, raw
  for i = 1, #limits do
    local l = limits[i]
    local left = l.has - n * l.need
    local due, own = now + (l.full - left) / l.count, stamp .. pack('<d', left)
    due = due - due % l.granule
    if l.field then
      l.numbers = own
      if due > l.due and due + l.granule > at then
        at = due + l.granule
      end
      if from then
        adjacent, numbers = adjacent and l.place == from + #numbers, numbers .. own
      else
        from, numbers = l.place, own
      end
    else
      written[l.key] = true
      if err then
        return err
      elseif l.raw and due <= l.due then
        err = failure(redis.pcall('SETRANGE', l.key, '0', own))
      else
        err = failure(redis.pcall('SET', l.key, own .. l.lone, 'PXAT', string.format('%.0f', (due + l.granule) / 1000)))
      end
    end
  end
  if err or not numbers then
    return err
  elseif is_hash then
    return write_hash(limits, at / 1000)
  elseif adjacent and at == 0 then
    written[tenant] = true
    return failure(redis.pcall('SETRANGE', tenant, from == 0 and '0' or from, numbers))
  end
  return write_string(limits, at / 1000)
end

-- decide_several decides n_calls calls of the run that begins at the argument run. Its
-- arguments and results are those of decide_rest.
return function(run, n_calls, first, key_at, n_out)
  local limits, at, n_fields = read_limits(run)
  if n_fields > MAX_FIELDS then
    return decide_rest(run, n_calls, first, key_at, n_out)
  end
  local taking, several = sub(ARGV[run], 1, 4) == 'take', #ARGV[run] == 5
  local m, n_keys = #limits, #limits - n_fields + min(n_fields, 1)
  at, offsets, known, text, text_at, raws = first or at, {}, {}, '', 1, {}
  if n_calls * n_keys <= 4000 and #KEYS > 0 then -- Lua passes no more than 8,000 values
    local all = redis.pcall('MGET', unpack(keys, key_at + 1, key_at + n_calls * n_keys))
    raws = all.err and raws or all
  end
  for i = 0, n_calls - 1 do
    local n, args = 1, at
    if several then
      n, args = tonumber(ARGV[at]), at + 1
    end
    if n_fields == 0 then
      n, args = read_levels(limits, n, args, key_at, i * n_keys)
    else
      n = read_tenant(keys[key_at + 1], i * n_keys + 1) and n
      if n then
        n, args = read_levels(limits, n, args, key_at + 1, i * n_keys + 1)
      end
    end
    if not n then
      for j = 1, n_keys do
        written[keys[key_at + j]] = true
      end
      at, key_at, n_out = decide_rest(run, 1, at, key_at, n_out)
    else
      at, key_at = args, key_at + n_keys
      local err = taking and n > 0 and charge(limits, n)
      for j = 1, err and 1 or m do
        out[n_out + j] = err or limits[j].has
      end
      n_out = n_out + (err and 1 or m)
    end
  end
  return at, key_at, n_out
end
