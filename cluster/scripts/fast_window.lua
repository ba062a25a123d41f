-- Calls with one fixed window with a key of its own: those of Envoy's descriptors. They are
-- decided as in general.lua, in a fraction of the time; values with a carry or of another kind
-- are left to general.lua.

-- decide_window decides calls of the run that begins at the argument run, of which there are
-- n_calls, until one is not such a call. Its results are those of decide_one.
return function(run, n_calls, key_at, n_out)
  local args, keys, out, now, call, pack, unpack_struct, byte, floor = ARGV, keys, out, now, redis.pcall, struct.pack, struct.unpack, string.byte, math.floor
  local text, several, at = args[run + 3], #args[run] == 5, run + 4
  local _, period, capacity, _, cost = unpack_struct('<ddddd', text, 3)
  local start = now - now % period
  local finish = start + period
  local taking = string.sub(args[run], 1, 4) == 'take' and cost > 0
  local expiry = string.format('%.0f', math.ceil(finish / 1000))
  local distinct = tonumber(string.sub(text, 2, 2), 36) % 16 >= 8
  local raws = distinct and n_calls > 1 and #KEYS > 0 and call('MGET', unpack(keys, key_at + 1, key_at + n_calls))
  raws = raws and not raws.err and raws or {}
  for i = 1, n_calls do
    local first, k, n, used = at, keys[key_at + 1], 1, 0
    if several then
      n, first = tonumber(args[first]), first + 1
    end
    -- MGET replies false for a value of another type, too: GET distinguishes it.
    local raw = raws[i] or call('GET', k)
    if raw then
      if raw.err or #raw ~= 49 or byte(raw) ~= 1 then
        return i - 1, at, key_at, n_out
      end
      local was_start, was_finish, was, prev, carry, carry_end = unpack_struct('<dddddd', raw, 2)
      local same = was_start == start and was_finish == finish
      if not (prev == 0 and carry == 0 and carry_end == 0 and was >= 0 and was <= 70368744177664 and was % 1 == 0 and (same or
          was_start >= 0 and was_start % 1 == 0 and was_finish > was_start and was_finish <= now and was_finish % 1 == 0 and was_finish - was_start <= 70368744177664)) then
        return i - 1, at, key_at, n_out
      end
      used = same and was or 0
    end
    at, key_at, n_out = first, key_at + 1, n_out + 1
    out[n_out] = -1 - used -- in place of six numbers
    local left, reply = capacity - used, nil
    if taking and left >= cost then
      if n * cost > left then
        n = floor(left / cost)
      end
      if used > 0 then -- it expires at the end already
        reply = call('SETRANGE', k, '17', pack('<d', used + n * cost))
      else
        reply = call('SET', k, '\1' .. pack('<dddddd', start, finish, used + n * cost, 0, 0, 0), 'PXAT', expiry)
      end
    end
    if type(reply) == 'table' and reply.err then
      out[n_out] = reply.err
    end
  end
  return n_calls, at, key_at, n_out
end
