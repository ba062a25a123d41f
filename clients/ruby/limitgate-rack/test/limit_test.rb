# frozen_string_literal: true

require_relative "helper"

class LimitTest < MiddlewareTest
  WAYS.each do |name, way|
    define_method("test_two_requests_are_admitted_by_#{name}") do
      reached = []
      app = limit(lambda { |env|
        reached << env["limitgate.decision"].allowed
        SERVED.call(env)
      }, **way, tenant: ->(env) { env["HTTP_X_TENANT"] })
      tenant = fresh
      answers = Array.new(3) { get(app, HTTP_X_TENANT: tenant) }
      assert_equal [200, 200, 429], answers.map(&:first)
      assert_equal [true, true], reached
      answers.each do |_, headers, _|
        assert_match(/\A"two";r=[01];t=\d+\z/, headers["ratelimit"])
        assert_equal '"two";q=2;w=60', headers["ratelimit-policy"]
        assert_equal headers.keys.map(&:downcase), headers.keys
      end
      assert_denied answers.last
      # Another path is another op, and another tenant has units of its own.
      assert_equal 200, get(app, "/other", HTTP_X_TENANT: tenant).first
      assert_equal 200, get(app, HTTP_X_TENANT: fresh).first
    end

    define_method("test_cost_ip_and_dims_by_#{name}") do
      tenant = fresh
      costly = limit(**way, tenant: tenant, op: "GET /costly", ip: ->(_) {}, cost: ->(_) { 2 })
      assert_equal [200, 429], statuses(costly, 2)
      # The limit "user" is one a minute.
      app = limit(**way, tenant: tenant, op: "GET /slow", dims: { user: "slow1" })
      assert_equal [200, 429], statuses(app, 2)
    end

    define_method("test_a_reservation_is_settled_when_the_body_is_closed_by_#{name}") do
      settled = []
      app = limit(**way, tenant: tenant = fresh, op: "GET /report", cost: 2, settle: lambda { |env, status|
        settled << [env["PATH_INFO"], status]
        env["PATH_INFO"] == "/free" ? 0 : 0.5
      })
      # Two units are reserved of two: without the settlements, the second would be denied.
      assert_equal [200, 200, 200], statuses(app, 3, "/free")
      assert_equal [200, 429], statuses(app, 2, "/half")
      assert_equal [["/free", 200]] * 3 + [["/half", 200]], settled
      # Half a unit counts as one, so that one is left.
      assert_equal [200, 429], statuses(limit(**way, tenant: tenant, op: "GET /report"), 2)
    end

    define_method("test_an_application_that_raises_or_throws_settles_by_#{name}") do
      settled = []
      app = limit(->(env) { env["PATH_INFO"] == "/raise" ? raise(IndexError) : throw(:done, :thrown) },
                  **way, tenant: fresh, op: "GET /", cost: 2, settle: lambda { |_, status|
                    settled << status
                    0
                  })
      2.times { assert_raises(IndexError) { get(app, "/raise") } }
      2.times { assert_equal :thrown, catch(:done) { get(app, "/throw") } }
      assert_equal [500] * 4, settled
    end

    define_method("test_mistakes_are_errors_by_#{name}") do
      wrong = { tenant: "t" * 300 }, { tenant: nil }, { ip: "nowhere" }, { cost: 0 }, { cost: 2.5 }, { cost: "1" },
              { cost: Float::NAN }, { op: "\xff" }, { op: "GET /#{"x" * 2000}" }, { dims: { user: nil } },
              { dims: { user: "u" * 20_000_000 } }, { tenant: "\xff".b }, { op: "a\nb" }
      wrong.each do |mistake|
        [{}, { settle: ->(*) { 1 } }].each do |settle|
          app = limit(->(_) { flunk "#{mistake} is a way past the limits" }, **way, tenant: "a", **mistake, **settle)
          assert_raises(Limitgate::Rack::DecisionError, mistake.inspect[0, 80]) { get(app) }
        end
      end
      # The connections go on.
      assert_equal 200, get(limit(**way, tenant: fresh)).first
    end

    define_method("test_texts_of_any_encoding_by_#{name}") do
      app = limit(**way, tenant: "é-#{fresh}", op: ->(env) { "GET #{env["PATH_INFO"]}" }, dims: { "user" => "ü".b })
      assert_equal [200, 200, 429], statuses(app, 3, "/ö".b)
    end

    define_method("test_an_error_of_settle_leaves_the_estimate_by_#{name}") do
      errors = []
      app = limit(**way, tenant: fresh, cost: 2, settle: ->(*) {}, on_error: ->(e) { errors << e })
      assert_equal [200, 429], statuses(app, 2)
      assert_equal ["settle gives nil: it has to give a number"], errors.map(&:message)
    end

    define_method("test_threads_by_#{name}") do
      app = limit(**way, tenant: fresh)
      others = limit(**way, tenant: ->(_) { fresh })
      threads = Array.new(8) { Thread.new { [get(app).first, *statuses(others, 20)] } }
      first, *rest = threads.map(&:value).transpose
      assert_equal [200] * 2 + [429] * 6, first.sort
      assert_equal [200], rest.flatten.uniq
    end
  end

  def test_the_option_on_denied_answers
    app = limit(**WAYS["redis-rb"], tenant: fresh, on_denied: ->(_env, decision) { [418, {}, [decision.limit_id]] })
    get(app)
    get(app)
    status, headers, body = get(app)
    assert_equal [418, "two"], [status, body]
    assert_operator headers["retry-after"].to_i, :>, 0
  end

  def test_fields_of_the_application_stay
    app = limit(->(_) { [200, { "ratelimit" => "own" }, []] }, **WAYS["redis-rb"], tenant: fresh)
    _, headers, = get(app)
    assert_equal "own", headers["ratelimit"]
    assert headers["ratelimit-policy"]
  end

  def test_options_are_checked
    assert_raises(ArgumentError) { limit(url: URL) }
    assert_match(/give a client of/, assert_raises(ArgumentError) { limit(tenant: "a") }.message)
    assert_match(/give a client of/, assert_raises(ArgumentError) { limit(tenant: "a", client: "redis://host") }.message)
    assert_match(/not both/, assert_raises(ArgumentError) { limit(tenant: "a", url: URL, client: WAYS["redis-rb"][:client]) }.message)
    ["127.0.0.1", "127.0.0.1:8080", "localhost:8080", "", "http://", "ftp://a"].each do |url|
      assert_match(/no URL: it is the address of limitgate serve --http/, assert_raises(ArgumentError, url) { limit(tenant: "a", url: url) }.message)
    end
    { timeout: "0.25", fail_open: "false", on_denied: 503, on_error: :ignore, settle: 1 }.each do |name, value|
      message = assert_raises(ArgumentError, name) { limit(tenant: "a", url: URL, name => value) }.message
      assert_includes message, "#{name} is #{value.inspect}: it is "
    end
    [Float::INFINITY, 0, -1, 1e30, Complex(1, 1)].each { |value| assert_raises(ArgumentError) { limit(tenant: "a", url: URL, timeout: value) } }
    message = assert_raises(ArgumentError) { limit(tenant: "a", url: URL, authorization: "Bearer sesame\nX: y") }.message
    assert_match(/the authorization has a line break/, message)
    refute_includes message, "sesame"
    limit(tenant: "a", url: URL, authorization: "Bearer sesame\n")
    refute_includes assert_raises(ArgumentError) { limit(tenant: "a", url: URL, on_error: Struct.new(:dsn).new("sesame")) }.message, "sesame"
  end

  def test_values_of_a_request_are_named
    { { tenant: ->(_) {} } => "the option tenant gives nil for this request: it has to give a text",
      { dims: { "region" => "eu", "user" => nil } } => "the dimension user is nil: leave it out",
      { dims: ["user"] } => "dims must be a Hash of names and texts",
      { dims: { user: "" } } => 'the dimension user is "": leave it out' }.each do |options, want|
      error = assert_raises(Limitgate::Rack::DecisionError) { get(limit(**WAYS["http"], tenant: "a", **options)) }
      assert_equal want, error.message
    end
  end

  def test_another_port_of_limitgate_is_named
    error = assert_raises(Limitgate::Rack::DecisionError) { get(limit(url: "http://#{HOST}:#{PORT}", tenant: "a")) }
    assert_match(/\ALimitgate answers 400: .*speaks the protocol of Redis/, error.message)
  end

  # As redis-rb does since its version 5.
  def test_a_wrong_password_is_a_mistake
    client = lambda { |*|
      begin
        raise Redis::CommandError, "WRONGPASS invalid username-password pair"
      rescue Redis::CommandError => e
        raise Redis::CannotConnectError, e.message
      end
    }
    assert_raises(Limitgate::Rack::DecisionError) { get(limit(client: client, tenant: "a")) }
  end

  def test_a_redis_in_the_place_of_limitgate_is_a_mistake
    client = ->(*) { raise Redis::CommandError, "ERR unknown command 'RL.CHECK', with args beginning with: 'a'" }
    error = assert_raises(Limitgate::Rack::DecisionError) { get(limit(client: client, tenant: "a")) }
    assert_match(/the server is a Redis, and no limitgate/, error.message)
  end

  def test_a_client_for_one_thread_is_refused
    skip "redis-client is not installed" unless defined?(RedisClient)
    assert_match(/new_pool/, assert_raises(ArgumentError) { limit(tenant: "a", client: RedisClient.new) }.message)
  end

  private

  def assert_denied((_status, headers, body))
    assert_operator headers["retry-after"].to_i, :>, 0
    assert_equal "no-store", headers["cache-control"]
    assert_equal "application/problem+json", headers["content-type"]
    problem = JSON.parse(body)
    assert_equal 429, problem["status"]
    assert_equal ["two"], problem["violated-policies"]
  end
end
