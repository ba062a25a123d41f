-- Calls that are asked most, token buckets with a level, written out: they are
-- decided as decide_call does, in half of its time. What they cannot read at
-- sight they leave to it.

-- decide_levels decides a run of calls of one token bucket each. It is
-- decide_call, written out for what is asked most. What it cannot read at sight
-- it leaves to decide_call.
local function decide_levels(limits, n_calls, several, taking)
  local l = limits[1]
  local prefix, head, size, stamp = l.prefix, l.head, l.size, l.stamp
  local full, count, need, granule = l.full, l.count, l.need, l.granule
  local is_field, call, args, names, replies, now = l.field, redis.pcall, ARGV, keys, out, now
  local unpack_struct, pack, sub, floor = unpack_struct, pack, sub, floor
  local n, f, last, has, was_due = 1, l.one_field, nil, nil, nil
  local own_field = is_field and not f
  for _ = 1, n_calls do
    local first = at
    if several then
      n = tonumber(args[first])
      first = first + 1
    end
    local k, raw = names[key_at + 1], nil
    if own_field then
      f = args[first]
      first = first + 1
    end
    if is_field then
      raw = call('HGET', k, f)
    else
      raw = call('GET', k)
    end
    has, was_due = nil, nil
    if not raw then
      has = full
    elseif #raw == size and sub(raw, 1, head) == prefix then
      last, has = unpack_struct('<dd', raw, head + 1)
      if last <= now and has <= full then
        was_due = last + (full - has) / count
        was_due = was_due - was_due % granule
        has = has + (now - last) * count
        if has > full then
          has = full
        end
      else
        has = nil
      end
    end
    if has then
      at, key_at, n_out = first, key_at + 1, n_out + 1
      replies[n_out] = has
      local left = has - need
      if n > 1 then
        left = has - min(n, floor(has / need)) * need
      end
      if taking and left >= 0 and left < has then
        local due = now + (full - left) / count
        due = due - due % granule
        if due ~= was_due then
          local err = write(k, f, stamp .. pack('<d', left), (due + granule) / 1000, false)
          if err then
            replies[n_out] = err
          end
        elseif is_field then
          local r = call('HSET', k, f, stamp .. pack('<d', left))
          if r ~= 0 then
            replies[n_out] = r.err
          end
        else
          local r = call('SET', k, stamp .. pack('<d', left), 'KEEPTTL')
          if r.err then
            replies[n_out] = r.err
          end
        end
      end
    else
      at = several and at + 1 or at
      address(limits)
      decide_call(limits, n, taking)
    end
  end
end

-- decide_fields decides a run of calls of several token buckets each, all of them
-- fields of the tenant's hash. It is decide_call, written out like decide_levels.
local function decide_fields(limits, n_calls, several, taking)
  local call, args, replies, now, m = redis.pcall, ARGV, out, now, #limits
  local unpack_struct, pack, sub, floor = unpack_struct, pack, sub, floor
  local n, has, was_due, hmget, hset = 1, {}, {}, {'HMGET'}, {'HSET'}
  for _ = 1, n_calls do
    local first, known = at, true
    if several then
      n = tonumber(args[first])
      first = first + 1
    end
    hmget[2] = keys[key_at + 1]
    for i = 1, m do
      hmget[i + 2] = limits[i].one_field
      if not hmget[i + 2] then
        hmget[i + 2] = args[first]
        first = first + 1
      end
    end
    local raws, granted = call(unpack(hmget, 1, m + 2)), n
    for i = 1, m do
      local l, raw = limits[i], raws[i]
      local full = l.full
      local level = nil
      if raw == false then
        level, was_due[i] = full, nil
      elseif raw and #raw == l.size and sub(raw, 1, l.head) == l.prefix then
        local last, was = unpack_struct('<dd', raw, l.head + 1)
        if last <= now and was <= full then
          local due = last + (full - was) / l.count
          was_due[i] = due - due % l.granule
          level = was + (now - last) * l.count
          if level > full then
            level = full
          end
        end
      end
      if not level then
        known = false
        break
      end
      has[i] = level
      if level < n * l.need then
        granted = min(granted, floor(level / l.need))
      end
    end
    if known then
      at, key_at = first, key_at + 1
      for i = 1, m do
        replies[n_out + i] = has[i]
      end
      if taking and granted > 0 then
        local arm = 0
        hset[2] = hmget[2]
        for i = 1, m do
          local l = limits[i]
          local left = has[i] - granted * l.need
          local due = now + (l.full - left) / l.count
          due = due - due % l.granule
          hset[2 * i + 1], hset[2 * i + 2] = hmget[i + 2], l.stamp .. pack('<d', left)
          if due ~= was_due[i] then
            arm = max(arm, (due + l.granule) / 1000)
          end
        end
        local r = call(unpack(hset, 1, 2 * m + 2))
        if arm > 0 and not failure(r) then
          r = arm_hash(hset[2], arm)
        end
        local err = failure(r)
        if err then
          for i = 2, m do
            replies[n_out + i] = nil
          end
          replies[n_out + 1] = err
          n_out = n_out - m + 1
        end
      end
      n_out = n_out + m
    else
      at = several and at + 1 or at
      address(limits)
      decide_call(limits, n, taking)
    end
  end
end
