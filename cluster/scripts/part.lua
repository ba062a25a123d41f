-- Parts of split buckets: units that were drawn from a bucket ahead. A part that is
-- not there is empty, nothing refills it but what is given to it, and it is forgotten
-- when the bucket itself would be full again. Its value is a format byte, 1, and the
-- units as a double. It is replied as a bucket's level is.

-- keep stores what a part holds. It returns what went wrong, or nil.
local function keep(key, l, units)
  return write(key, nil, '\1' .. pack('<d', units), ceil((now + l.granule) / 1000), false)
end

-- held returns what a part holds, or nil and an error text.
local function held(key)
  local raw = redis.pcall('GET', key)
  if not raw then
    return 0
  elseif raw.err then
    return nil, raw.err
  elseif #raw ~= 9 or sub(raw, 1, 1) ~= '\1' then
    return nil, 'LGFORMAT the part is in a format this release does not know'
  end
  local units = unpack_struct('<d', raw, 2)
  if units % 1 ~= 0 or units < 0 or units > 4503599627370496 then
    return nil, 'LGFORMAT the part holds what is no number of units'
  end
  return units
end

-- decide_part decides a run of calls, or gives units to parts.
local function decide_part(verb, limits, n_calls, several)
  local l = limits[1]
  for _ = 1, n_calls do
    local n, key = 1, keys[key_at + 1]
    key_at = key_at + 1
    if several then
      n = tonumber(ARGV[at])
      at = at + 1
    end
    local units, err = held(key)
    if verb == 'refund' then
      at = at + 1
      err = err or keep(key, l, min(units + l.cost, l.capacity))
      n_out, units = n_out + 1, 1
    else
      local taken = units and min(n, floor(units / l.cost)) or 0
      if verb == 'take' and taken > 0 then
        err = keep(key, l, units - taken * l.cost)
      end
      n_out = n_out + 1
    end
    out[n_out] = err or units
  end
end

return decide_part
