-- The variables of a run of the script. fast_single.lua decides the most frequent calls. The
-- code for all others is a text that makes its functions when it is first needed, see
-- script.go: Lua would make them anew in each run of the script, which costs more than most
-- decisions. So does each variable that functions share; hence there are few here.

local WRITE_FORMAT = 3 -- the format of new buckets, see bucket.lua
local time = redis.call('TIME') -- the only clock
local now = time[1] * 1000000 + time[2]

-- The position of the next keys and arguments, and the replies so far.
local keys, key_at = KEYS, 0
local at = 1
if #KEYS == 0 then
  keys, key_at, at = ARGV, 1, tonumber(ARGV[1]) + 2
end
local out, n_out = {now}, 1
