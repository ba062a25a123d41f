-- Calls with several token buckets with levels. They are decided as in general.lua, in half
-- of the time; values that cannot be decoded directly are left to general.lua. The fields
-- of the tenant's hash are read and written together.

local m, n_fields = 0, 0 -- of the limits
local key, has, was_due = {}, {}, {} -- of each bucket
local hmget, hset = {'HMGET'}, {'HSET'}

-- read_fields reads the fields of a call whose own arguments begin at first. It returns the
-- fields and the index of the next arguments.
local function read_fields(limits, first)
  local j = 2
  hmget[2] = keys[key_at + 1]
  for i = 1, m do
    if limits[i].field then
      j = j + 1
      hmget[j] = limits[i].one_field
      if not hmget[j] then
        hmget[j] = ARGV[first]
        first = first + 1
      end
    end
  end
  return redis.pcall(unpack(hmget, 1, j)), first
end

-- read_level decodes the value of bucket i, stores its level and returns it; or nil if the
-- value cannot be decoded directly.
local function read_level(i, l, raw)
  local full = l.full
  if not raw then
    was_due[i], has[i] = nil, full
    return full
  elseif #raw ~= l.size or sub(raw, 1, l.head) ~= l.prefix then
    return nil
  end
  local last, was = unpack_struct('<dd', raw, l.head + 1)
  if not is_level(l, last, was) then
    return nil
  end
  local due = last + (full - was) / l.count
  was_due[i] = due - due % l.granule
  was = was + (now - last) * l.count
  if was > full then
    was = full
  end
  has[i] = was
  return was
end

-- charge takes n checks from every bucket. It returns an error text or nil.
local function charge(limits, n)
  local arm, err, j = 0, nil, 2
  for i = 1, m do
    local l = limits[i]
    local left = has[i] - n * l.need
    local due = now + (l.full - left) / l.count
    due = due - due % l.granule
    local value, till = l.stamp .. pack('<d', left), (due + l.granule) / 1000
    if not l.field then
      err = err or write(key[i], nil, value, till, due == was_due[i])
    else
      hset[2 * j - 1], hset[2 * j] = hmget[j + 1], value
      j = j + 1
      if due ~= was_due[i] and till > arm then
        arm = till
      end
    end
  end
  if n_fields == 0 or err then
    return err
  end
  hset[2] = hmget[2]
  local r = redis.pcall(unpack(hset, 1, 2 * j - 2))
  if arm > 0 and not failure(r) then
    r = arm_hash(hset[2], arm)
    if failure(r) then -- no key without an expiry
      for i = 1, j - 2 do
        redis.pcall('HDEL', hset[2], hset[2 * i + 1])
      end
    end
  end
  return failure(r)
end

-- decide_next decides one call with several buckets, and reports whether it could.
local function decide_next(verb, limits, several)
  local first, next_key, n, j, raws = at, key_at + 1, 1, 0, nil
  if several then
    n = tonumber(ARGV[first])
    first = first + 1
  end
  if n_fields > 0 then
    raws, first = read_fields(limits, first)
    next_key = next_key + 1
    if raws.err then
      return false
    end
  end
  for i = 1, m do
    local l, raw = limits[i], nil
    if l.field then
      j = j + 1
      raw = raws[j]
    else
      key[i], next_key = keys[next_key], next_key + 1
      raw = redis.pcall('GET', key[i])
    end
    local level = read_level(i, l, raw)
    if not level then
      return false
    end
    if level < n * l.need then
      n = floor(level / l.need)
    end
  end
  at, key_at = first, next_key - 1
  for i = 1, m do
    out[n_out + i] = has[i]
  end
  local err = verb == 'take' and n > 0 and charge(limits, n)
  if err then
    for i = 2, m do
      out[n_out + i] = nil
    end
    out[n_out + 1] = err
    n_out = n_out + 1
  else
    n_out = n_out + m
  end
  return true
end

-- decide_several decides a run of calls.
local function decide_several(verb, limits, n_calls, several)
  m, n_fields = #limits, 0
  for i = 1, m do
    if limits[i].field then
      n_fields = n_fields + 1
    end
  end
  for _ = 1, n_calls do
    if not decide_next(verb, limits, several) then
      decide_any(verb, limits, 1, several)
    end
  end
end

return decide_several
