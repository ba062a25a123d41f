-- Strings of fields, see bucket.lua for their format. Both fast_multi.lua and general.lua need
-- this.

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local pack, unpack_struct, sub, byte = struct.pack, struct.unpack, string.sub, string.byte

local MAX_FIELDS = 16 -- of a string, see hashes.lua
local MAX_STRING = 8192 -- longer, in bytes, than any string of fields, see hashes.lua
local MAX_NAME = 128 -- of a field, in bytes; a longer one is in a hash
local MAX_PARAMS = 64 -- longer than the text of a field behind its name

-- doubles_of returns the length in bytes of the numbers in a string of fields, or nil if
-- raw is none.
local function doubles_of(raw)
  local low, high, format = byte(raw, -3, -1)
  local n = format == 3 and 8 * (low + 256 * high)
  return n and n + 3 <= #raw and #raw <= MAX_STRING and n or nil
end

-- params_at returns the offset in bytes of the numbers of the field whose name ends before
-- first, its parameters, and where the next field begins; or nil if these are none. It looks
-- at few bytes: a value of another program must not keep the server busy.
local function params_at(text, first)
  local last = string.find(text, ';', first, true)
  if not last or last - first > MAX_PARAMS then
    return nil
  end
  local offset, params = string.match(sub(text, first, last), '^(%d*)([%w/]*);$')
  return offset and 8 * (tonumber(offset) or 0), params, last + 1
end

-- find_field returns the offset in bytes of the numbers of a field, and its parameters; or
-- nil if the text of the fields does not have its name.
local function find_field(text, name)
  name = name .. '}'
  local first = 1
  if sub(text, 1, #name) ~= name then -- no name contains "}", and only a name begins with ":"
    first = string.find(text, ';' .. name, 1, true)
    if not first then
      return nil
    end
    first = first + 1
  end
  return params_at(text, first + #name)
end

-- failure returns the error of a reply, or nil.
local function failure(reply)
  return type(reply) == 'table' and reply.err or nil
end

-- arm makes a key that holds several buckets expire no earlier than at, in ms: it lives as
-- long as the bucket that lives longest. PTTL counts from a clock that may be a little
-- behind, hence the slack. It returns an error text or nil.
local function arm(key, at)
  local ttl = redis.pcall('PTTL', key)
  if not failure(ttl) and (ttl < 0 or now / 1000 + ttl < at + 2) then
    ttl = redis.pcall('PEXPIREAT', key, string.format('%.0f', max(at, ttl < 0 and 0 or ceil(now / 1000) + ttl)))
  end
  return failure(ttl)
end
