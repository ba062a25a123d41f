# Drives redis-rb; see ../go/steps, which does the same.
require 'json'
require 'openssl'
require 'redis'

CHECKS = 100
BURST = 60

def check(tenant, cost = '1')
  ['RL.CHECK', tenant, '-', '-', cost]
end

def expect(good, complaint)
  raise complaint unless good
end

def in_order(i, reply)
  expect(reply.is_a?(Array) && reply.size == 7, "no decision: #{reply.inspect}")
  want = i < BURST ? [1, BURST, BURST - 1 - i] : [0, BURST, 0]
  expect(reply[0, 3] == want && reply[5, 2] == %w[daily store], "check #{i + 1} answers #{reply.inspect}")
end

def admitted(client)
  reply = client.call(*check('other'))
  expect(reply.size == 7 && reply[0] == 1 && reply[6] == 'store', "answers #{reply.inspect}")
end

STEPS = {
  check: lambda do |client|
    CHECKS.times { |i| in_order(i, client.call(*check('alone'))) }
  end,
  pipeline: lambda do |client|
    replies = client.pipelined { |p| CHECKS.times { p.call(*check('piped')) } }
    expect(replies.size == CHECKS, "#{replies.size} replies")
    replies.each_with_index { |reply, i| in_order(i, reply) }
  end,
  denial: lambda do |client|
    reply = client.call(*check('alone'))
    expect(reply[0].zero? && reply[3].positive?, "answers #{reply.inspect}")
  end,
  error: lambda do |client|
    begin
      reply = client.call(*check('other', 'bad'))
    rescue Redis::CommandError => e
      expect(e.message.include?('cost must be an integer between 1 and 2147483647'), "says #{e.message}")
    else
      raise "answers #{reply.inspect}"
    end
    admitted(client)
  end,
  dialect: lambda do |client|
    reply = client.call('CL.THROTTLE', 'key', '5', '10', '60', '1')
    expect(reply == [0, 6, 5, -1, 6], "answers #{reply.inspect}")
  end,
  reconnect: lambda do |client|
    puts 'kill'
    $stdout.flush
    answer = $stdin.gets.to_s.strip
    expect(answer == 'killed', "told #{answer}")
    begin
      admitted(client)
    rescue Redis::BaseConnectionError # one call may fail
      admitted(client)
    end
  end
}.freeze

# credentials returns the options of the environment: TLS, the client's certificate and its
# user.
def credentials
  tls = { ca_file: ENV['CLIENT_CA'] }
  if ENV['CLIENT_CERT']
    tls[:cert] = OpenSSL::X509::Certificate.new(File.read(ENV['CLIENT_CERT']))
    tls[:key] = OpenSSL::PKey.read(File.read(ENV['CLIENT_KEY']))
  end
  options = ENV['CLIENT_CA'] ? { ssl: true, ssl_params: tls } : {}
  options.merge!(username: ENV['CLIENT_USER'], password: ENV['CLIENT_PASSWORD']) if ENV['CLIENT_USER']
  options
end

def connect(host, port, mode)
  return Redis.new(host: host, port: port.to_i, **credentials) unless mode == 'cluster'

  scheme = ENV['CLIENT_CA'] ? 'rediss' : 'redis'
  Redis.new(cluster: ["#{scheme}://#{host}:#{port}"], **credentials)
end

host, port, mode, = ARGV
saw = {}
begin
  client = connect(host, port, mode)
  STEPS.each do |name, step|
    step.call(client)
    saw[name] = 'ok'
  rescue StandardError => e
    saw[name] = "#{e.class}: #{e.message}"
  end
rescue StandardError => e
  saw[:check] = "connect: #{e.class}: #{e.message}"
end
puts JSON.generate(version: Redis::VERSION, steps: saw)
