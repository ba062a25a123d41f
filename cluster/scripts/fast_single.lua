-- Calls with one token bucket with a level: the most frequent calls. They are decided as in
-- general.lua, in half of the time; values that cannot be decoded directly are left to
-- general.lua.

-- decide_one decides a run of calls.
local function decide_one(verb, limits, n_calls, several)
  local l = limits[1]
  local prefix, head, size, stamp = l.prefix, l.head, l.size, l.stamp
  local full, count, need, granule = l.full, l.count, l.need, l.granule
  local taking, is_field, own_field = verb == 'take', l.field, l.field and not l.one_field
  local call, args, names, replies, now = redis.pcall, ARGV, keys, out, now
  local n, f = 1, l.one_field
  for _ = 1, n_calls do
    local first, k = at, names[key_at + 1]
    if several then
      n = tonumber(args[first])
      first = first + 1
    end
    if own_field then
      f = args[first]
      first = first + 1
    end
    local raw = is_field and call('HGET', k, f) or not is_field and call('GET', k)
    local has, was_due
    if not raw then
      has = full
    elseif #raw == size and sub(raw, 1, head) == prefix then
      local last, was = unpack_struct('<dd', raw, head + 1)
      if is_level(l, last, was) then
        was_due = last + (full - was) / count
        was_due = was_due - was_due % granule
        has = was + (now - last) * count
        if has > full then
          has = full
        end
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
        local err = write(k, f, stamp .. pack('<d', left), (due + granule) / 1000, due == was_due)
        if err then
          replies[n_out] = err
        end
      end
    else
      decide_any(verb, limits, 1, several)
    end
  end
end

return decide_one
