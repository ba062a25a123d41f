# Calls the Ruby code of docs/clients.md. It connects with TLS if the environment has a password.
require 'redis'
require_relative 'connection'
require_relative 'limited'
require_relative 'snippet'

host, port, password = ARGV[0], ARGV[1].to_i, ENV['CLIENT_PASSWORD']
client = password ? connect(host, port, password) : Redis.new(host: host, port: port)
puts 'take'
$stdout.flush
$stdin.gets
results = ['later', 'never', 'GET /hourly'].map { |op| admit(client, 'snippet', op, '-') }
['GET /hourly', 'GET /free'].each do |op|
  allowed, headers = check(client, 'snippet', op, '127.0.0.1')
  results.push(allowed ? 200 : 429, headers['Retry-After'])
end
begin
  check(client, 'snippet', 'long' * 300, '127.0.0.1')
rescue Redis::CommandError
  results.push(500)
end
puts results.join(' ')
