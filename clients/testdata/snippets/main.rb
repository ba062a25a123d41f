# Calls the README's Ruby snippet.
require 'redis'
require_relative 'snippet'

client = Redis.new(host: ARGV[0], port: ARGV[1].to_i)
puts 'take'
$stdout.flush
$stdin.gets
puts "#{admit(client, 'snippet', 'later', '-')} #{admit(client, 'snippet', 'never', '-')}"
