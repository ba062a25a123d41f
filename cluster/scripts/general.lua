-- Calls with any limits: their buckets are read, decided together and charged. The
-- arguments and replies are described in main.lua.

-- A bucket of the current call is a table, made for the call:
--   key, field       its key, and its field unless it has a key of its own
--   state, stored,   the six numbers brought to now, the stored ones, and whether the state
--   rewritten        has to be stored even if nothing is taken
--   fits             number of checks that fit

-- INSERT expiring_units

-- address returns the buckets of a call with the limits.
local function address(limits)
  local buckets, hash = {}, nil
  for i = 1, #limits do
    local l = limits[i]
    if l.field then
      if not hash then
        key_at = key_at + 1
        hash = keys[key_at]
      end
      local f = l.one_field
      if not f then
        f = ARGV[at]
        at = at + 1
      end
      buckets[i] = {key = hash, field = f}
    end
  end
  for i = 1, #limits do
    if not limits[i].field then
      key_at = key_at + 1
      buckets[i] = {key = keys[key_at]}
    end
  end
  return buckets
end

-- load reads a bucket's value and brings it to now. It returns the units left in the
-- bucket, or nil and an error text.
local function load(b, l, hold)
  if l.algorithm >= SLIDING_LOG then
    return expiring_units().load(b, l, hold)
  end
  local known, err = fetch(l, b.key, b.field)
  if err then
    return nil, err
  end
  local s, changed = enter(l, known)
  if not s then
    return nil, 'LGCLOCK'
  end
  b.state, b.stored, b.rewritten = s, known, changed
  return room(l, s)
end

-- reply appends a number, or the error text of a call.
local function reply(what)
  n_out = n_out + 1
  out[n_out] = what
end

-- retract removes the replies after since, and replies an error text instead.
local function retract(since, err)
  for j = since + 1, n_out do
    out[j] = nil
  end
  n_out = since
  reply(err)
end

-- reply_bucket appends the numbers of a bucket, and reports whether the reply can carry all
-- of them exactly.
local function reply_bucket(b, l)
  local s, first = b.state, n_out + 1
  if l.levels then
    reply(s[1] * l.period + s[2])
  elseif l.algorithm == TOKEN_BUCKET then
    reply(s[1])
    reply(s[2])
  else
    for j = 1, #s do
      reply(s[j])
    end
  end
  for j = first, n_out do
    if not (out[j] >= -EXACT and out[j] <= EXACT) then -- nor is NaN
      return false
    end
  end
  return true
end

-- take charges a bucket for n checks, and returns an error text or nil.
local function take(b, l, n, hold)
  if n == 0 and not b.rewritten then
    return nil
  elseif l.algorithm >= SLIDING_LOG then
    return expiring_units().take(b, l, n, hold)
  end
  local s, was = b.state, b.stored
  charge(l, s, n * l.cost)
  local armed = was and not b.rewritten and expires_at(l, was) == expires_at(l, s)
  return save(l, b.key, b.field, s, armed)
end

-- decide_call decides a call that stands for n checks. It returns the number of granted
-- checks, or nil if it could not decide. hold is set for a call that is held: the holder's
-- name and the time in ms.
local function decide_call(limits, buckets, n, verb, hold)
  local granted, before = n, n_out
  for i = 1, #limits do
    local l, b = limits[i], buckets[i]
    local units, err = load(b, l, hold)
    if not units then
      retract(before, err)
      return nil
    end
    b.fits = l.cost > 0 and max(0, floor(units / l.cost)) or units >= 0 and n or 0
    if l.enforced and b.fits < granted then
      granted = b.fits
    end
  end
  for i = 1, #limits do
    if not reply_bucket(buckets[i], limits[i]) then
      retract(before, NO_STATE)
      return nil
    end
  end
  for i = 1, verb == 'take' and #limits or 0 do
    local err = take(buckets[i], limits[i], min(granted, buckets[i].fits), hold)
    if err then
      retract(before, err)
      return nil
    end
  end
  return granted
end

-- guarded calls f, and replies an error text for this call alone if f fails: the value of
-- one bucket must not fail the other calls of the run.
local function guarded(f, ...)
  local before = n_out
  local ok, err = pcall(f, ...)
  if not ok then
    retract(before, 'LGERROR ' .. sub(tostring(type(err) == 'table' and err.err or err), 1, 256))
  end
end

-- INSERT refund_settle

-- reset_fields removes the fields of a tenant's buckets whose names begin with a prefix.
local function reset_fields()
  local prefix = ARGV[at]
  at, key_at = at + 1, key_at + 1
  reply(hashes().remove(keys[key_at], function(name) return sub(name, 1, #prefix) ~= prefix end))
end

-- decide_any decides a run of calls of any limits.
local function decide_any(verb, limits, n_calls, several)
  if verb == 'reset' then
    return reset_fields()
  elseif verb ~= 'take' and verb ~= 'peek' then
    return refund_settle()(verb, limits, n_calls)
  end
  for _ = 1, n_calls do
    local n = 1
    if several then
      n = tonumber(ARGV[at])
      at = at + 1
    end
    guarded(decide_call, limits, address(limits), n, verb)
  end
end
