-- Calls with one token bucket with a level, alone in its string: the most frequent calls.
-- They are decided as in general.lua, in a fraction of the time.

-- decide_one decides calls of the run that begins at the argument run, of which there are
-- n_calls, until one is not such a call. It returns the number of decided calls, and the
-- positions of the next arguments, keys and replies.
local function decide_one(run, n_calls, key_at, n_out)
  local args, keys, out, now, call, pack, unpack_struct, sub = ARGV, keys, out, now, redis.pcall, struct.pack, struct.unpack, string.sub
  local text, taking, several = args[run + 3], sub(args[run], 1, 4) == 'take', #args[run] == 5
  local flags, at = tonumber(sub(text, 2, 2), 36), run + 4
  local count, period, capacity, granule, cost, params = unpack_struct('<ddddd', text, 3)
  local full, need, name, rest = capacity * period, cost * period, '', '}' .. sub(text, params) .. ';\2\0\3'
  if flags % 8 >= 4 then
    name, at = args[at], at + 1
  end
  local lone, own_field = name .. rest, flags % 2 == 1 and name == '' -- lone is the text of the string
  local raws = flags % 16 >= 8 and n_calls > 1 and #KEYS > 0 and call('MGET', unpack(keys, key_at + 1, key_at + n_calls))
  raws = raws and not raws.err and raws or {}
  for i = 1, n_calls do
    local first, k, n, has, was_due = at, keys[key_at + 1], 1, full, 0
    if several then
      n, first = tonumber(args[first]), first + 1
    end
    if own_field then
      lone, first = args[first] .. rest, first + 1
    end
    -- MGET replies false for a value of another type, too: GET distinguishes it.
    local raw = raws[i] or call('GET', k)
    if raw then
      if raw.err or sub(raw, 17) ~= lone then
        return i - 1, at, key_at, n_out
      end
      local last, was = unpack_struct('<dd', raw)
      if not (last >= 0 and last <= now and last % 1 == 0 and was <= full and was >= -full and was % 1 == 0) then
        return i - 1, at, key_at, n_out
      end
      was_due = last + (full - was) / count
      was_due = was_due - was_due % granule
      has = was + (now - last) * count
      if has > full then
        has = full
      end
    end
    at, key_at, n_out = first, key_at + 1, n_out + 1
    out[n_out] = has
    local left = has - need
    if n > 1 then
      left = has - math.min(n, math.floor(has / need)) * need
    end
    if taking and left >= 0 and left < has then
      local due, reply = now + (full - left) / count, nil
      due = due - due % granule
      if raw and due <= was_due then
        reply = call('SETRANGE', k, '0', pack('<dd', now, left))
      else
        reply = call('SET', k, pack('<dd', now, left) .. lone, 'PXAT', string.format('%.0f', (due + granule) / 1000))
      end
      out[n_out] = type(reply) == 'table' and reply.err or has
    end
  end
  return n_calls, at, key_at, n_out
end
