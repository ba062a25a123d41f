-- A proxy says that it is there. KEYS[1] is the hash of all proxies: a field is the
-- id of one, its value when the entry ends by the store's clock, in ms. ARGV:
--   1 the id
--   2 how long an entry lives, in ms
--   3 how often those that have ended are looked for, in ms
--   4 how many entries there may be
-- It returns how many there are, and 1 if that of this proxy was not there.

local key, id = KEYS[1], ARGV[1]
local ttl, every, most = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = string.format('%.0f', now + ttl)

-- So many, and when was looked, are not proxies. Those that live come back with
-- their next beat.
if redis.call('HLEN', key) > most + 1 then
  redis.call('UNLINK', key)
end

-- Who may not arm an expiry finds that out before there is a key without one.
redis.call('PEXPIREAT', key, ends)
local new = redis.call('HSET', key, id, ends)
redis.call('PEXPIREAT', key, ends)

-- The looking costs as much as there are entries, so it is done by one for all. A
-- proxy so slow that its entry has ended comes back with its next beat.
local SWEPT = 'swept'
local swept = tonumber(redis.call('HGET', key, SWEPT))
if not (swept and swept <= now and now < swept + every) then
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local field, at = all[i], tonumber(all[i + 1])
    -- What is no moment, or one too far away, nobody would ever take out.
    if field ~= SWEPT and not (at and at > now and at <= now + 10 * ttl) then
      redis.call('HDEL', key, field)
    end
  end
  redis.call('HSET', key, SWEPT, string.format('%.0f', now))
end
return {redis.call('HLEN', key) - 1, new}
