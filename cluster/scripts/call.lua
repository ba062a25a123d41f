-- Calls of any limits: their buckets are read, decided together and charged. What
-- is read of the arguments, and what is replied, is said in decide.lua.

-- The call being decided: the key and field of each bucket, and what is known
-- of it. They are reused from call to call.
local key, field = {}, {}
local level, due = {}, {} -- of token buckets with a level
local state, stored, format, rewritten = {}, {}, {}, {} -- of the others

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
    for j = 1, 6 do
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
  end
  local s, was = state[i], stored[i]
  charge(l, s, n * l.cost)
  local armed = was and not rewritten[i] and expires_at(l, was) == expires_at(l, s)
  return save(l, key[i], field[i], s, format[i], armed)
end

-- decide_call decides a call that stands for n checks, and returns whether it granted
-- any.
local fits = {}
local function decide_call(limits, n, verb)
  local granted = n
  for i = 1, #limits do
    local l = limits[i]
    local units, err = load(i, l)
    if not units then
      return reply(err)
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
      return reply(err)
    end
  end
  return granted > 0
end

-- give_back returns a state with units back in it, or nil when they no longer
-- weigh: a window that has passed takes nothing back.
local function give_back(l, s, window)
  s = {s[1], s[2], s[3], s[4], s[5], s[6]}
  if l.algorithm == TOKEN_BUCKET then
    s[1] = s[1] + l.cost
    if s[1] >= s[6] then
      s[1], s[2] = s[6], 0
    end
    return s
  elseif s[1] ~= window then
    return nil
  end
  s[3] = max(0, s[3] - l.cost)
  return s
end

-- refund gives back what a limit's bucket was charged in a window, and returns
-- the number of buckets that took it, or an error text.
local function refund(i, l, window)
  local raw = fetch(key[i], field[i])
  if not raw then
    return 0
  elseif raw.err then
    return raw.err
  end
  local was, form = unpack_state(l, raw)
  if not was then
    return 'LGFORMAT the bucket is in a format this release does not know'
  end
  local s = give_back(l, was, window)
  if not s then
    return 0
  end
  -- It may have been written by another limit, whose state it stays. The key may
  -- live longer than it needs now: it must not live shorter.
  if l.algorithm == TOKEN_BUCKET then
    local text = string.format('%.0f/%.0f/%.0f;', s[4], s[5], s[6])
    l = read_limit('10' .. pack('<ddddd', s[4], s[5], s[6], 1, l.cost) .. text)
  end
  return write(key[i], field[i], pack_state(l, s, form), 0, true) or 1
end

local function refund_call(limits)
  local windows = at
  at = at + #limits
  local done = 0
  for i = 1, #limits do
    local took = refund(i, limits[i], tonumber(ARGV[windows + i - 1]))
    if type(took) == 'string' then
      return reply(took)
    end
    done = done + took
  end
  reply(done)
end

-- once_call decides a call, or repeats what it was granted when it was made before:
-- the time then, and what its buckets were. Before that it replies 1 if it repeats.
-- What is kept is of the same limits and costs, whose texts are its first part.
local function once_call(limits)
  key_at = key_at + 1
  local record, ttl, texts = keys[key_at], ARGV[at], {}
  at = at + 1
  address(limits)
  for i = 1, #limits do
    texts[i] = sub(limits[i].text, 1, 42) -- without boundaries of windows, which move on
  end
  local shape = table.concat(texts)
  local kept = redis.pcall('GET', record)
  if type(kept) == 'string' then
    local ok, was = pcall(cmsgpack.unpack, kept)
    if ok and type(was) == 'table' and was[1] == shape then
      out[1] = was[2]
      reply(1)
      for i = 3, #was do
        reply(was[i])
      end
      return
    end
  end
  reply(0)
  local note, before = {shape, now}, n_out
  if decide_call(limits, 1, 'take') then
    for i = before + 1, n_out do
      note[#note + 1] = out[i]
    end
    redis.pcall('SET', record, cmsgpack.pack(note), 'PX', ttl)
  end
end

-- decide_any decides a run of calls of any limits.
local function decide_any(verb, limits, n_calls, several)
  for _ = 1, n_calls do
    local n = 1
    if several then
      n = tonumber(ARGV[at])
      at = at + 1
    end
    if verb == 'once' then
      once_call(limits)
    else
      if verb == 'revoke' then
        key_at = key_at + 1
        redis.pcall('DEL', keys[key_at])
      end
      address(limits)
      if verb == 'refund' or verb == 'revoke' then
        refund_call(limits)
      else
        decide_call(limits, n, verb)
      end
    end
  end
end

return decide_any
