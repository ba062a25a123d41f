-- Gives back the units that a call took, in the windows in which it took them.
--
-- KEYS     as for take
-- ARGV     four for each item: its parameters (read_params), the units, the
--          start of the window that was charged, its field ("" for a key of
--          its own)
--
-- Replies the number of buckets that took the units back. A window that has
-- passed, and a bucket that is gone, takes nothing back: both mean that the
-- units no longer weigh.

local items = {}
for i = 1, #ARGV, 4 do
  local item = {p = read_params(ARGV[i]), units = tonumber(ARGV[i + 1]), window = tonumber(ARGV[i + 2]), field = ARGV[i + 3]}
  items[#items + 1] = item
end

local failed = load(items)
if failed then
  return failed
end

-- give_back returns the state with the units back in it, or nil.
local function give_back(item)
  local s = item.stored
  if not s then
    return nil
  end
  s = {s[1], s[2], s[3], s[4], s[5], s[6]}
  if item.p.algorithm == TOKEN_BUCKET then
    s[1] = s[1] + item.units
    if s[1] >= s[6] then
      s[1], s[2] = s[6], 0
    end
    return s
  end
  if s[1] ~= item.window then
    return nil
  end
  s[3] = max(0, s[3] - item.units)
  return s
end

local done = 0
for i = 1, #items do
  local item = items[i]
  item.state = give_back(item)
  if item.state then
    done = done + 1
    local value = pack_state(item.state, item.format)
    if item.p.field then
      redis.call('HSET', item.key, item.field, value)
    else
      redis.call('SET', item.key, value, 'KEEPTTL')
      local at = expires_at(item.p, item.state)
      if item.p.algorithm == TOKEN_BUCKET and at ~= expires_at(item.p, item.stored) then
        -- It is full earlier now. An instant that has passed ends the key.
        redis.call('PEXPIREAT', item.key, string.format('%.0f', at))
      end
    end
  end
end
return done
