# Calls the Ruby code of docs/clients.md. It connects with TLS if the environment has a password.
require 'redis'
require_relative 'connection'
require_relative 'snippet'

host, port, password = ARGV[0], ARGV[1].to_i, ENV['CLIENT_PASSWORD']
client = password ? connect(host, port, password) : Redis.new(host: host, port: port)
puts 'take'
$stdout.flush
$stdin.gets
puts "#{admit(client, 'snippet', 'later', '-')} #{admit(client, 'snippet', 'never', '-')}"
