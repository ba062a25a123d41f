-- The yardstick: one token bucket in one number, the time at which it would be
-- full again, in microseconds since a recent day. It is the least that a script
-- must do to decide exactly one check on one bucket whose limit is data and
-- whose key expires.
--
-- KEYS[1]  the bucket
-- ARGV     microseconds per unit, and how many a full bucket is worth
local time = redis.call('TIME')
local now = (time[1] - 1700000000) * 1000000 + time[2]
local full = tonumber(redis.call('GET', KEYS[1]) or 0)
if full < now then full = now end
full = full + ARGV[1]
local ahead = full - now
if ahead > ARGV[2] + 0 then return 0 end
redis.call('SET', KEYS[1], full, 'PX', (ahead - ahead % 1000) / 1000 + 1)
return 1
