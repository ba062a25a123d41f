-- Operations on a call after it was granted: it is refunded, replayed to a caller that
-- repeats it, or, if it is held, settled.
--
-- A record is stored under a key of its own, as a MessagePack array:
--   1 the texts of the call's limits, 2 when it was granted, 3 its TTL in ms
--   4 OPEN, SETTLED or CANCELLED, 5 when it ends, 6 the buckets of a held call: for each
--     the key, the field or false, the limit's text, whether the charge follows the units
--     used, the units, and the window they were taken in
--   7 the holder of its slots, 8 how often it was replayed, and from 9 on the states of
--     the buckets in the answer

local OPEN, SETTLED, CANCELLED = 1, 2, 3
local REPEATS = 10000000 -- for so long, in us, what was settled is replayed
local ANSWER = 9 -- where in a record the answer begins
local LONG_NAME = 512 -- from this length in bytes a bucket's refusals are not cached, see package limiter

-- window_of returns the window in which a bucket has been charged.
local function window_of(b, l)
  if l.algorithm == SLIDING_LOG then
    return now
  elseif l.algorithm >= SLIDING_LOG or l.algorithm == TOKEN_BUCKET then
    return 0
  end
  return b.state[1]
end

-- holder returns the name of a call's holder in sets of slots: a different one each time
-- that the call is granted, so that operations on another grant of the same id do not
-- affect it.
local function holder(record) return sub(record, string.find(record, '}', 1, true) + 1) .. string.format('@%.0f', now) end

-- MAX_RECORD is longer, in bytes, than a record of eight buckets with the longest names: a
-- value of another program must not keep the server busy.
local MAX_RECORD = 262144

-- is_record reports whether was is a record.
local function is_record(was)
  if type(was) ~= 'table' or type(was[1]) ~= 'string' or type(was[6]) ~= 'table' or type(was[7]) ~= 'string' then
    return false
  end
  for i = 2, #was do
    local n = was[i]
    if i ~= 6 and i ~= 7 and (type(n) ~= 'number' or n ~= floor(n) or n < (i < ANSWER and 0 or -EXACT) or n > EXACT) then
      return false
    end
  end
  for i = 1, #was[6] do
    local b = was[6][i]
    if type(b) ~= 'table' or type(b[1]) ~= 'string' or type(b[3]) ~= 'string' or type(b[5]) ~= 'number' or type(b[6]) ~= 'number' then
      return false
    end
  end
  return #was >= 8
end

-- numbers returns how many numbers the states of the limits have in a reply.
local function numbers(limits)
  local n = 0
  for i = 1, #limits do
    local l = limits[i]
    if l.levels then
      n = n + 1
    elseif l.algorithm == TOKEN_BUCKET then
      n = n + 2
    else
      n = n + (l.algorithm >= SLIDING_LOG and 4 or 6)
    end
  end
  return n
end

-- read_record returns the record under a key, nil if there is none, or nil and an error
-- text if the value is not a record.
local function read_record(record)
  local size = redis.pcall('STRLEN', record)
  if failure(size) then
    return nil, size.err
  elseif size > MAX_RECORD then
    return nil, NO_STATE
  end
  local kept = redis.pcall('GET', record)
  if not kept then
    return nil
  elseif kept.err then
    return nil, kept.err
  end
  local ok, was = pcall(cmsgpack.unpack, kept)
  if ok and is_record(was) then
    return was
  end
  return nil, NO_STATE
end

local function write_record(record, was)
  return failure(redis.pcall('SET', record, cmsgpack.pack(was), 'PX', string.format('%.0f', was[3])))
end

-- give_back returns a state with units returned to it, or nil if they no longer count: a
-- window that has passed takes nothing back. The units of a sliding window count for one
-- more period after its end.
local function give_back(l, s, units, window)
  s = {s[1], s[2], s[3], s[4], s[5], s[6]}
  if l.algorithm == TOKEN_BUCKET then
    s[1] = s[1] + units
    if s[1] >= s[6] then
      s[1], s[2] = s[6], 0
    end
    return s
  elseif l.algorithm == SLIDING_WINDOW then
    local period = s[2] - s[1]
    sliding_move(s, period)
    if window == s[1] - period and s[4] > 0 then
      s[4] = max(0, s[4] - units)
      return s
    end
  elseif s[2] <= now then
    return nil
  end
  if s[1] ~= window or s[3] == 0 then
    return nil
  end
  s[3] = max(0, s[3] - units)
  return s
end

-- written_by returns the limit that a token bucket was last written with: the bucket keeps
-- it.
local function written_by(s)
  local full = muldiv_ceil(s[6], s[5], s[4])
  local granule = max(1000000, floor(full / 8 / 1000000) * 1000000)
  return read_limit('10' .. pack('<ddddd', s[4], s[5], s[6], granule, 1) .. params_text(s[4], s[5], s[6]))
end

-- give returns units to a bucket that were charged in a window. It returns the number of
-- buckets that took them, 0 or 1, or an error text. It leaves the expiry of the key, which
-- may then be later than needed but must not be earlier.
local function give(l, k, f, units, window, by)
  if l.algorithm >= SLIDING_LOG then
    local n = expiring_units().give(k, l, units, window, by)
    return type(n) == 'string' and n or min(n, 1)
  end
  local was, err = fetch(l, k, f)
  if not was then
    return err or 0
  end
  local s = give_back(l, was, units, window)
  if not s then
    return 0
  end
  if l.algorithm == TOKEN_BUCKET then
    l = written_by(s)
  end
  return put(l, k, f, s) or 1
end

-- move brings the state of a window to now, with the window's own length: the limit may
-- have changed since the charge. It returns nil if the limit has no window for now.
local function move(l, s)
  local length = s[2] - s[1]
  if s[1] > now or l.algorithm ~= SLIDING_WINDOW and now >= s[2] and (l.bounds or s[1] % length > 0) then
    return enter(l, s)
  end
  s = {s[1], s[2], s[3], s[4], s[5], s[6]}
  if l.algorithm == SLIDING_WINDOW then
    sliding_move(s, length)
  elseif now >= s[2] then
    s[1], s[3], s[4] = now - now % length, 0, 0
    s[2] = s[1] + length
  end
  if s[6] <= now then
    s[5], s[6] = 0, 0
  end
  return s
end

-- overdraw takes units from a bucket even if they do not fit: at most as many as overdraw it by
-- its capacity. It returns an error text or nil.
local function overdraw(l, k, f, units)
  if l.algorithm >= SLIDING_LOG then
    return expiring_units().overdraw(k, l, units)
  end
  local was, err = fetch(l, k, f)
  if err then
    return err
  end
  if was and l.algorithm == TOKEN_BUCKET then
    l = written_by(was)
  end
  local s
  if was and l.algorithm ~= TOKEN_BUCKET then
    s = move(l, was)
  else
    s = enter(l, was)
  end
  if not s then
    return 'LGCLOCK'
  end
  charge(l, s, max(0, min(units, room(l, s) + l.capacity)))
  return save(l, k, f, s, false)
end

-- refund_call returns the units of a call to its buckets. A bucket that cannot take them
-- does not keep the others from taking theirs; its error is the reply.
local function refund_call(limits, buckets, windows, by)
  local done, err = 0, nil
  for i = 1, #limits do
    local took = give(limits[i], buckets[i].key, buckets[i].field, limits[i].cost, windows[i], by)
    if type(took) == 'string' then
      err = took
    else
      done = done + took
    end
  end
  reply(err or done)
end

-- read_windows reads for each bucket of a call the window that was charged.
local function read_windows(limits)
  local windows = {}
  for i = 1, #limits do
    windows[i] = tonumber(ARGV[at])
    at = at + 1
  end
  return windows
end

-- shape returns the part of a limit's text that a record holds: without the boundaries of
-- windows, which change.
local function shape(l) return sub(l.text, 1, 42) end

-- is_of reports whether the limits of a record include all the limits.
local function is_of(was, limits)
  for i = 1, #limits do
    if not string.find(was[1], shape(limits[i]), 1, true) then
      return false
    end
  end
  return true
end

-- revoke_call refunds a call with a record, and deletes the record. If the answer was
-- replayed, the call undoes one of the replays: the units go back with the last one. A
-- settled call is not refunded. A record of another call with the same id, which has
-- replaced this one's, stays.
local function revoke_call(limits, record)
  local buckets, windows = address(limits), read_windows(limits)
  local was, err = read_record(record)
  if err then
    return reply(err)
  elseif was and not is_of(was, limits) then
    return refund_call(limits, buckets, windows)
  elseif was and was[8] > 0 then
    was[8] = was[8] - 1
    return reply(failure(redis.pcall('SET', record, cmsgpack.pack(was), 'KEEPTTL')) or 0)
  end
  redis.pcall('DEL', record)
  if was and was[4] ~= OPEN then
    return reply(0)
  end
  refund_call(limits, buckets, windows, was and was[7])
end

-- replay replays the recorded answer if it is of the same call, and reports whether it
-- did. A refunded call is decided anew, and so is a settled call after REPEATS: then it is
-- another call with the same id. A replay that cannot be counted is an error: decided anew,
-- the call would be denied because of its own units.
local function replay(record, was, limits, shapes)
  if not was or was[1] ~= shapes or #was ~= 8 + numbers(limits) or was[5] <= now or was[4] == CANCELLED or was[4] == SETTLED and was[2] + REPEATS <= now then
    return false
  end
  was[8] = was[8] + 1
  local err = failure(redis.pcall('SET', record, cmsgpack.pack(was), 'KEEPTTL'))
  if err then
    return false, err
  end
  out[1] = was[2]
  reply(1)
  for i = ANSWER, #was do
    reply(was[i])
  end
  return true
end

-- recorded_call decides a call with a record key, or replays its recorded answer. It first
-- replies 1 for a replay, else 0; the time of a replay is that of the first answer. A
-- recorded answer is replayed only for the same limits and costs.
local function recorded_call(limits, is_held)
  key_at = key_at + 1
  local record, ttl, follows, hold = keys[key_at], tonumber(ARGV[at]), '', nil
  at = at + 1
  if is_held then
    follows = ARGV[at]
    at = at + 1
    hold = {ttl = ttl, by = holder(record)}
  end
  local buckets, texts = address(limits), {}
  for i = 1, #limits do
    texts[i] = shape(limits[i])
  end
  local shapes = table.concat(texts)
  local was, err = read_record(record)
  local again, uncounted = replay(record, was, limits, shapes)
  if again then
    return
  end
  reply(0)
  err = err or uncounted
  if err then
    return reply(err)
  end
  local before = n_out
  local granted = decide_call(limits, buckets, 1, 'take', hold)
  if not granted or granted == 0 then
    return
  end
  local charged = {}
  for i = 1, is_held and #limits or 0 do
    local l, b = limits[i], buckets[i]
    local units = b.fits > 0 and l.cost or 0
    charged[i] = {b.key, b.field or false, l.text, sub(follows, i, i) == '1', units, units > 0 and window_of(b, l) or 0}
  end
  local note = {shapes, now, ttl, OPEN, now + ttl * 1000, charged, hold and hold.by or '', 0}
  for i = before + 1, n_out do
    note[#note + 1] = out[i]
  end
  write_record(record, note)
end

-- undeclared returns the keys of a record's buckets if the script did not declare all of
-- them, or else false.
local function undeclared(was)
  local known, names, missing = {}, {}, false
  for i = 1, #KEYS do
    known[KEYS[i]] = true
  end
  for i = 1, #was[6] do
    names[i] = was[6][i][1]
    missing = missing or not known[names[i]]
  end
  return missing and table.concat(names, '\n')
end

-- renew extends the slots of a record to ttl from now.
local function renew(record, was, ttl)
  local slots, by = {}, was[7]
  for i = 1, #was[6] do
    local b = was[6][i]
    if sub(b[3], 1, 1) == CONCURRENCY and b[5] > 0 then
      slots[#slots + 1] = b
      if not expiring_units().holds(b[1], by) then
        return 0
      end
    end
  end
  for i = 1, #slots do
    if not expiring_units().renew(slots[i][1], read_limit(slots[i][3]), by, ttl) then
      return 0
    end
  end
  was[3], was[5] = ttl, now + ttl * 1000
  return write_record(record, was) or 1
end

-- settle_bucket changes the charge of a bucket: "commit" to the units used, "cancel" to
-- nothing; "release" returns only the slot. A bucket that was charged nothing, because it
-- is not enforced, stays as it is. It reports whether the bucket changed.
local function settle_bucket(b, verb, used, by)
  local l, units = read_limit(b[3]), b[5]
  if units == 0 or verb == 'release' and l.algorithm ~= CONCURRENCY or verb == 'commit' and not b[4] then
    return false
  elseif verb == 'commit' and used > units then
    return not overdraw(l, b[1], b[2], used - units)
  elseif verb == 'commit' then
    units = units - used
  end
  return units > 0 and give(l, b[1], b[2], units, b[6], by) == 1
end

-- settle_call settles a held call. It writes the record before the buckets: a bucket that
-- cannot be changed then keeps its charge. It replies the names of the buckets that
-- changed.
local function settle_call(verb)
  local record, used, ttl, free = keys[key_at + 1], tonumber(ARGV[at]), tonumber(ARGV[at + 1]), ARGV[at + 2] == '1'
  at = at + 3
  local was, err = read_record(record)
  if err then
    return reply(err)
  elseif not was or was[5] <= now then
    return reply(0)
  elseif was[4] ~= OPEN then
    return reply(2)
  end
  local names = not free and undeclared(was)
  if names then
    return reply('LGKEYS ' .. names)
  elseif verb == 'renew' then
    return reply(renew(record, was, ttl > 0 and ttl or was[3]))
  end
  local buckets = was[6]
  for i = 1, #buckets do -- while their slot moves they may be elsewhere
    err = failure(redis.pcall('EXISTS', buckets[i][1]))
    if err then
      return reply(err)
    end
  end
  was[4], was[5], was[6] = verb == 'commit' and SETTLED or CANCELLED, now + was[3] * 1000, {}
  err = write_record(record, was)
  if err then
    return reply(err)
  end
  local back = {}
  for i = 1, #buckets do
    local b = buckets[i]
    local name = b[1] .. (b[2] or '')
    if settle_bucket(b, verb, used, was[7]) and #name < LONG_NAME then
      back[#back + 1] = name
    end
  end
  reply(#back > 0 and 'LGDONE ' .. table.concat(back, '\n') or 1)
end

-- finish runs the op verb on one call.
local function finish(verb, limits)
  if verb == 'once' or verb == 'hold' then
    recorded_call(limits, verb == 'hold')
  elseif verb == 'revoke' then
    key_at = key_at + 1
    revoke_call(limits, keys[key_at])
  elseif verb == 'refund' then
    local buckets = address(limits)
    refund_call(limits, buckets, read_windows(limits))
  else
    settle_call(verb)
  end
end

return function(verb, limits, n_calls)
  for _ = 1, n_calls do
    finish(verb, limits)
  end
end
