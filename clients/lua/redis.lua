-- Drives lua-redis; see ../go/steps, which does the same. It leaves it to the
-- program to connect again.
local redis = require 'redis'

local CHECKS, BURST = 100, 60
local host, port = arg[1], tonumber(arg[2])

local function command(name)
  return redis.command(name)
end
redis.commands.check = command('RL.CHECK')
redis.commands.throttle = command('CL.THROTTLE')

local function show(reply)
  if type(reply) ~= 'table' then return tostring(reply) end
  local words = {}
  for i, field in ipairs(reply) do words[i] = tostring(field) end
  return table.concat(words, ' ')
end

local function in_order(i, reply)
  local want = i <= BURST and { 1, BURST, BURST - i } or { 0, BURST, 0 }
  local good = type(reply) == 'table' and #reply == 7 and reply[6] == 'daily' and reply[7] == 'store'
  for at, n in ipairs(want) do good = good and reply[at] == n end
  if not good then error('check ' .. i .. ' answers ' .. show(reply), 0) end
end

local function admitted(client)
  local reply = client:check('other', '-', '-', 1)
  if #reply ~= 7 or reply[1] ~= 1 or reply[7] ~= 'store' then error('answers ' .. show(reply), 0) end
end

-- secured returns a connection with TLS. lua-redis has no option for TLS, but takes a socket,
-- which LuaSec makes.
local function secured(ca, cert, key)
  local plain = assert(require('socket').connect(host, port))
  plain:setoption('tcp-nodelay', true)
  local stream = assert(require('ssl').wrap(plain, {
    mode = 'client', protocol = 'any', options = 'all', verify = 'peer', cafile = ca, certificate = cert, key = key,
  }))
  assert(stream:dohandshake())
  return stream
end

local function connect()
  local ca, user = os.getenv('CLIENT_CA'), os.getenv('CLIENT_USER')
  local client
  if ca then
    client = redis.connect({ socket = secured(ca, os.getenv('CLIENT_CERT'), os.getenv('CLIENT_KEY')) })
  else
    client = redis.connect(host, port)
  end
  if user then client:auth(user, os.getenv('CLIENT_PASSWORD')) end
  return client
end

local client = connect()

local steps = {
  { 'check', function()
    for i = 1, CHECKS do in_order(i, client:check('alone', '-', '-', 1)) end
  end },
  { 'pipeline', function()
    local replies = client:pipeline(function(p)
      for _ = 1, CHECKS do p:check('piped', '-', '-', 1) end
    end)
    if #replies ~= CHECKS then error(#replies .. ' replies', 0) end
    for i, reply in ipairs(replies) do in_order(i, reply) end
  end },
  { 'denial', function()
    local reply = client:check('alone', '-', '-', 1)
    if reply[1] ~= 0 or reply[4] <= 0 then error('answers ' .. show(reply), 0) end
  end },
  { 'error', function()
    local fine, says = pcall(client.check, client, 'other', '-', '-', 'bad')
    if fine then error('answers no error', 0) end
    if not tostring(says):find('cost must be an integer between 1 and 2147483647', 1, true) then
      error('says ' .. tostring(says), 0)
    end
    admitted(client)
  end },
  { 'dialect', function()
    local got = show(client:throttle('key', 5, 10, 60, 1))
    if got ~= '0 6 5 -1 6' then error('answers ' .. got, 0) end
  end },
  { 'reconnect', function()
    print('kill')
    io.stdout:flush()
    local answer = io.read('*l')
    if answer ~= 'killed' then error('told ' .. tostring(answer), 0) end
    if pcall(admitted, client) then return 'ok' end
    client = connect()
    admitted(client)
    return 'by hand'
  end },
}

local saw = {}
for i, step in ipairs(steps) do
  local fine, how = pcall(step[2])
  saw[i] = string.format('"%s":"%s"', step[1], fine and (how or 'ok') or tostring(how):gsub('[^%w %p]', ' '):gsub('["\\]', "'"))
end
print(string.format('{"version":"%s","steps":{%s}}', redis._VERSION:match('[%d.]+.*'), table.concat(saw, ',')))
