# frozen_string_literal: true

# LIMITGATE and LIMITGATE_URL are the addresses of a limitgate that has the limits of
# clients/node/express/test/limits.yaml: two requests a minute for each op of a tenant.
$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))

require "limitgate-rack"
require "minitest/autorun"
require "redis"
require "securerandom"
require "socket"
begin
  require "redis-client"
rescue LoadError
  # Its tests are left out.
end

HOST, PORT = ENV.fetch("LIMITGATE").split(":")
URL = ENV.fetch("LIMITGATE_URL")

# WAYS are the ways to ask.
WAYS = {
  "redis-rb" => { client: Redis.new(host: HOST, port: PORT.to_i, timeout: 1) },
  "http" => { url: URL, timeout: 1 }
}
WAYS["redis-client"] = { client: RedisClient.config(host: HOST, port: PORT.to_i, timeout: 1).new_pool(size: 4) } if defined?(RedisClient)

# A test of the middleware, which it calls as a server does.
class MiddlewareTest < Minitest::Test
  SERVED = ->(_env) { [200, { "content-type" => "text/plain" }.freeze, ["served"]] }

  # limit returns the middleware in front of an application.
  def limit(app = SERVED, **options)
    Limitgate::Rack::Limit.new(app, **options)
  end

  # fresh returns a tenant that no other test and no earlier run has.
  def fresh
    "rack-#{SecureRandom.hex(6)}"
  end

  # get sends a request, and returns the status, the header fields and the content of the response.
  def get(app, path = "/items", **env)
    status, headers, body = app.call(env_of(path, **env))
    content = +""
    body.each { |part| content << part }
    body.close if body.respond_to?(:close)
    [status, headers, content]
  end

  def env_of(path, **env)
    { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, "REMOTE_ADDR" => "203.0.113.7" }
      .merge(env.transform_keys(&:to_s))
  end

  # statuses returns the statuses of some requests.
  def statuses(app, count, path = "/items")
    Array.new(count) { get(app, path).first }
  end
end
