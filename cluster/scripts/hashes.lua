-- A tenant's key that holds a hash, and changes of the fields of a string. The release before
-- this one writes only hashes, and this one moves them to strings. A tenant with more than
-- MAX_FIELDS buckets, or with long names of them, has a hash all the same: Lua reads a string as a
-- whole, and hashes each byte of it.

local MAX_BYTES = 4096

local function is_wrong_type(reply) return failure(reply) and sub(reply.err, 1, 9) == 'WRONGTYPE' end

-- fields_of returns the fields of a string whose names keep reports, as three lists: their
-- numbers, names and parameters; and how many others there are.
local function fields_of(raw, keep)
  local numbers, names, all, others = {}, {}, {}, 0
  local text = sub(raw, doubles_of(raw) + 1, -4)
  local first, last = 1, string.find(text, '}', 1, true)
  while last and #names < MAX_FIELDS do
    local name = sub(text, first, last - 1)
    local from, params, following = params_at(text, last + 1)
    if not from then
      break
    elseif keep(name) then
      local count, period, capacity = params_of(params)
      local size, i = count and (capacity * period < 4503599627370496 and 16 or 24) or 48, #names + 1
      numbers[i], names[i], all[i] = sub(raw, from + 1, from + size), name, params
    else
      others = others + 1
    end
    first, last = following, string.find(text, '}', following, true)
  end
  return numbers, names, all, others
end

local stay = {} -- the keys of hashes that cannot move

-- moved returns the buckets of a hash as a string of fields, or nil if it cannot.
local function moved(key)
  local n, numbers, names, all = redis.pcall('HLEN', key), {}, {}, {}
  local hash = not stay[key] and type(n) == 'number' and n <= MAX_FIELDS and redis.pcall('HGETALL', key) or {}
  stay[key] = true
  for i = 1, #hash / 2 do
    local value = hash[2 * i]
    if #value > MAX_VALUE or byte(value) ~= 1 then
      return nil
    end
    local count, period, capacity, first = string.match(value, '^(%d+)/(%d+)/(%d+);()', 2)
    local size = 48
    if count then
      count, period, capacity = tonumber(count), tonumber(period), tonumber(capacity)
      size = capacity * period < 4503599627370496 and 16 or 24
    end
    if count and max(count, period, capacity) > EXACT then
      return nil
    end
    numbers[i], names[i] = sub(value, first or 2), hash[2 * i - 1]
    all[i] = count and params_text(count, period, capacity) or ''
    if #numbers[i] ~= size then
      return nil
    end
  end
  local raw = joined(numbers, names, all)
  return #names > 0 and #raw < MAX_BYTES and raw or nil
end

-- spread replaces a string by a hash of fields. It returns an error text or nil.
local function spread(key, numbers, names, all)
  local args = {'HSET', key}
  for i = 1, #names do
    local count, period, capacity = params_of(all[i])
    args[2 * i + 1], args[2 * i + 2] = names[i], '\1' .. (count and string.format('%.0f/%.0f/%.0f;', count, period, capacity) or '') .. numbers[i]
  end
  local ttl = redis.pcall('PTTL', key)
  local at = not failure(ttl) and ceil(now / 1000) + 1 + max(ttl, 0)
  local err = failure(ttl) or failure(redis.pcall('PEXPIREAT', key, string.format('%.0f', at))) -- no key without an expiry
  if err then
    return err
  end
  err = failure(redis.pcall('DEL', key)) or failure(redis.pcall(unpack(args))) or failure(redis.pcall('PEXPIREAT', key, string.format('%.0f', at)))
  if err then -- nor without its buckets
    set(key, joined(numbers, names, all), at)
  end
  return err
end

-- put_hash stores a field in a hash.
local function put_hash(l, key, field, s, at)
  local err = failure(redis.pcall('HSET', key, field, pack_old(l, s)))
  if not err and at then
    err = arm(key, at)
    if err then -- no key without an expiry
      redis.pcall('HDEL', key, field)
    end
  end
  return err
end

-- fetch returns the state of a field of a hash, as fetch of bucket.lua does. raw is what GET
-- replied.
local function fetch_field(l, key, field, raw)
  if is_wrong_type(raw) then
    raw = redis.pcall('HGET', key, field)
  elseif not raw.err then
    return nil, NO_STATE
  end
  if not raw then
    return nil
  elseif raw.err then
    return nil, raw.err
  end
  local s = unpack_old(l, raw)
  if is_state(l, s) then
    return s
  end
  return nil, NO_STATE
end

-- add stores a field that a string does not have, or not with these parameters.
local function add(l, key, field, s, at, raw)
  local numbers, names, params = fields_of(raw, function(name) return name ~= field end)
  if #names >= MAX_FIELDS or #raw + #field >= MAX_BYTES then
    return spread(key, numbers, names, params) or put_hash(l, key, field, s, at)
  end
  local i = #names + 1
  numbers[i], names[i], params[i] = numbers_of(l, s), field, l.params or ''
  return set(key, joined(numbers, names, params))
end

-- put_new stores a field where there is no string. raw is what GET replied.
local function put_new(l, key, field, s, at, raw)
  if raw and not is_wrong_type(raw) then
    return raw.err or NO_STATE
  end
  local all = raw and WRITE_FORMAT == 3 and moved(key)
  if not all then
    return put_hash(l, key, field, s, at)
  end
  return at and arm(key, at) or add(l, key, field, s, at, all)
end

-- remove_fields removes the fields of a tenant's string, or hash, except those whose names
-- keep reports. It returns how many they are, or an error text.
local function remove_fields(key, keep)
  local raw = redis.pcall('GET', key)
  if is_wrong_type(raw) then
    local names, removed = redis.pcall('HKEYS', key), 0
    for i = 1, #names do
      removed = removed + (keep(names[i]) and 0 or redis.pcall('HDEL', key, names[i]))
    end
    return names.err or removed
  elseif not raw then
    return 0
  elseif raw.err or not doubles_of(raw) then
    return raw.err or NO_STATE
  end
  local numbers, names, all, others = fields_of(raw, keep)
  if others == 0 then
    return 0
  elseif #names == 0 then
    return failure(redis.pcall('DEL', key)) or others
  end
  return set(key, joined(numbers, names, all)) or others
end

return {fetch = fetch_field, put = put_new, add = add, remove = remove_fields}
