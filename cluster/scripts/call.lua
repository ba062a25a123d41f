-- Calls of any limits: their buckets are read, decided together and charged. What
-- is read of the arguments, and what is replied, is said in decide.lua.

-- The call being decided: the key and field of each bucket, and what is known
-- of it. They are reused from call to call.
local key, field = {}, {}
local level, due = {}, {} -- of token buckets with a level
local state, stored, format, rewritten = {}, {}, {}, {} -- of the others
local fits = {} -- how many checks each bucket has room for
local held = {} -- of a call that is held: for how many ms, and by whom

-- INSERT one_by_one

-- address finds the keys and fields of a call of the limits.
local function address(limits)
  local hash
  for i = 1, #limits do
    if limits[i].field then
      if not hash then
        key_at = key_at + 1
        hash = keys[key_at]
      end
      key[i], field[i] = hash, limits[i].one_field
      if not field[i] then
        field[i] = ARGV[at]
        at = at + 1
      end
    end
  end
  for i = 1, #limits do
    if not limits[i].field then
      key_at = key_at + 1
      key[i], field[i] = keys[key_at], nil
    end
  end
end

-- load reads a bucket's value and brings it to now. It returns the units that
-- the bucket can give, or nil and an error text.
local function load(i, l)
  if l.algorithm >= SLIDING_LOG then
    return one_by_one().load(i, l)
  end
  local raw = fetch(key[i], field[i])
  state[i], level[i], due[i] = nil, nil, nil
  if l.sight then
    if not raw then
      level[i] = l.full
      return l.capacity
    elseif #raw == l.size and sub(raw, 1, l.head) == l.prefix then
      local last, was = unpack_struct('<dd', raw, l.head + 1)
      if is_level(l, last, was) then
        due[i] = level_due(l, last, was)
        was = min(l.full, was + (now - last) * l.count)
        level[i] = was
        return floor(was / l.period)
      end
    end
  end
  local known, form = nil, 0
  if raw then
    if raw.err then
      return nil, raw.err
    end
    known, form = unpack_state(l, raw)
    if not known then
      return nil, 'LGFORMAT the bucket is in a format this release does not know'
    end
  end
  local s, changed = enter(l, known)
  if not s then
    return nil, 'LGCLOCK'
  end
  state[i], stored[i], format[i], rewritten[i] = s, known, form, changed
  return room(l, s)
end

-- reply appends a number, or the error text of a call.
local function reply(what)
  n_out = n_out + 1
  out[n_out] = what
end

-- reply_bucket appends what bucket i was.
local function reply_bucket(i, l)
  local s = state[i]
  if level[i] then
    reply(level[i])
  elseif l.levels then
    reply(s[1] * l.period + s[2])
  elseif l.algorithm == TOKEN_BUCKET then
    reply(s[1])
    reply(s[2])
  else
    for j = 1, #s do
      reply(s[j])
    end
  end
end

-- take charges bucket i for n checks, and returns what went wrong, or nil.
local function take(i, l, n)
  if level[i] then
    if n == 0 then
      return nil
    end
    local left = level[i] - n * l.need
    local till = level_due(l, now, left)
    return write(key[i], field[i], l.stamp .. pack('<d', left), (till + 1) * l.granule / 1000, till == due[i])
  end
  if n == 0 and not rewritten[i] then
    return nil
  elseif l.algorithm >= SLIDING_LOG then
    return one_by_one().take(i, l, n)
  end
  local s, was = state[i], stored[i]
  charge(l, s, n * l.cost)
  local armed = was and not rewritten[i] and expires_at(l, was) == expires_at(l, s)
  return save(l, key[i], field[i], s, format[i], armed)
end

-- decide_call decides a call that stands for n checks, and returns how many it
-- granted, nil if it could not. Bucket i had room for fits[i].
local function decide_call(limits, n, verb)
  local granted = n
  for i = 1, #limits do
    local l = limits[i]
    local units, err = load(i, l)
    if not units then
      reply(err)
      return nil
    end
    local fit = max(0, floor(units / l.cost))
    fits[i] = fit
    if l.enforced and fit < granted then
      granted = fit
    end
  end
  local before = n_out
  for i = 1, #limits do
    reply_bucket(i, limits[i])
  end
  for i = 1, verb == 'take' and #limits or 0 do
    local err = take(i, limits[i], min(granted, fits[i]))
    if err then
      for j = before + 1, n_out do
        out[j] = nil
      end
      n_out = before
      reply(err)
      return nil
    end
  end
  return granted
end

-- INSERT later

-- decide_any decides a run of calls of any limits.
local function decide_any(verb, limits, n_calls, several)
  if verb ~= 'take' and verb ~= 'peek' then
    return later()(verb, limits, n_calls)
  end
  for _ = 1, n_calls do
    local n = 1
    if several then
      n = tonumber(ARGV[at])
      at = at + 1
    end
    address(limits)
    decide_call(limits, n, verb)
  end
end

return decide_any
