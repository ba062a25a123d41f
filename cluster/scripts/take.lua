-- Decides the buckets of one call, all or nothing.
--
-- KEYS     the tenant's hash first, if any bucket is a field of it, then the
--          buckets that are keys of their own, in the order of the items
-- ARGV[1]  "take", or "peek" to change nothing
-- ARGV     then three for each item: its parameters (read_params), its cost in
--          units, its field ("" for a key of its own)
--
-- Replies five integers for each item: allowed (1 or 0), units remaining, true
-- wait in ms (0 when allowed, -1 for never), ms until full, and the start in
-- microseconds of the window that was charged (0 for token buckets).
-- When the clock lies outside the boundaries of a calendar window, nothing is
-- decided and it replies two integers: -1 and the time in microseconds.

local function window(bounds)
  for i = 1, 3 do
    if bounds[i] <= now and now < bounds[i + 1] then
      return bounds[i], bounds[i + 1]
    end
  end
  return nil
end

local function decide(item)
  local p, s, cost = item.p, item.stored, item.cost
  if p.algorithm == TOKEN_BUCKET then
    return token_decide(p, s, cost)
  elseif p.algorithm == SLIDING_WINDOW then
    return sliding_decide(p, s, cost)
  end
  local start = now - now % p.period
  local finish = start + p.period
  if p.bounds then
    start, finish = window(p.bounds)
    if not start then
      return nil
    end
  end
  return fixed_decide(p, s, cost, start, finish)
end

local items = {}
for i = 2, #ARGV, 3 do
  local item = {p = read_params(ARGV[i]), cost = tonumber(ARGV[i + 1]), field = ARGV[i + 2]}
  items[#items + 1] = item
end

local failed = load(items)
if failed then
  return failed
end

local granted, reply = true, {}
for i = 1, #items do
  local item = items[i]
  local r = decide(item)
  if not r then
    return {-1, now}
  end
  item.r, item.rewritten = r, r.rewritten
  if r.allowed == 0 and item.p.enforced then
    granted = false
  end
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5] = r.allowed, r.remaining, r.wait, r.reset, r.window
end

if ARGV[1] == 'take' then
  for i = 1, #items do
    local item = items[i]
    local r = item.r
    item.state = r.state
    if r.allowed == 1 and not granted then
      -- Evaluated as if it were taken: put the units back.
      local at = item.p.algorithm == TOKEN_BUCKET and 1 or 3
      local sign = at == 1 and 1 or -1
      r.state[at] = r.state[at] + sign * item.cost
    end
    if (r.allowed == 1 and granted) or r.rewritten then
      save(item)
    end
  end
end
return reply
