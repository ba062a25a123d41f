-- Registers a proxy. KEYS[1] is the hash of all proxies: a field is the id of a proxy, its
-- value the time at which the entry expires, by the store's clock, in ms. ARGV:
--   1 the id
--   2 lifetime of an entry, in ms
--   3 interval of searches for expired entries, in ms
--   4 maximum number of entries
-- Returns the number of entries, and 1 if this proxy had none.

local key, id = KEYS[1], ARGV[1]
local ttl, every, most = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = string.format('%.0f', now + ttl)

-- A hash with more entries than that, beside the time of the last search, does not hold
-- only proxies. Live proxies register again with their next beat.
if redis.call('HLEN', key) > most + 1 then
  redis.call('UNLINK', key)
end

-- A user without the right to set an expiry fails here, before the key exists without one.
redis.call('PEXPIREAT', key, ends)
local new = redis.call('HSET', key, id, ends)
redis.call('PEXPIREAT', key, ends)

-- The search costs as much as there are entries, so one proxy does it for all. A proxy so
-- slow that its entry has expired registers again with its next beat.
local SWEPT = 'swept'
local swept = tonumber(redis.call('HGET', key, SWEPT))
if not (swept and swept <= now and now < swept + every) then
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local field, at = all[i], tonumber(all[i + 1])
    -- A value that is no time, or one too far in the future, would never expire.
    if field ~= SWEPT and not (at and at > now and at <= now + 10 * ttl) then
      redis.call('HDEL', key, field)
    end
  end
  redis.call('HSET', key, SWEPT, string.format('%.0f', now))
end
return {redis.call('HLEN', key) - 1, new}
