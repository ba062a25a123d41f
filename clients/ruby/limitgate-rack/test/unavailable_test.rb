# frozen_string_literal: true

require_relative "helper"

# Without Limitgate: nothing listens, or a server does not answer.
class UnavailableTest < MiddlewareTest
  def setup
    @silent = TCPServer.new("127.0.0.1", 0)
    closed = TCPServer.new("127.0.0.1", 0)
    @closed_port = closed.addr[1]
    closed.close
  end

  def teardown
    @silent.close
  end

  # ways returns the ways to ask a port, with time limits of a tenth of a second.
  def ways(port)
    all = [{ client: Redis.new(host: "127.0.0.1", port: port, timeout: 0.1, reconnect_attempts: 0) },
           { url: "http://127.0.0.1:#{port}", timeout: 0.1 }]
    all << { client: RedisClient.config(host: "127.0.0.1", port: port, timeout: 0.1).new_pool } if defined?(RedisClient)
    all
  end

  def test_requests_go_on_or_get_503
    (ways(@closed_port) + ways(@silent.addr[1])).each do |way|
      [true, false].product([nil, ->(*) { 1 }]).each do |fail_open, settle|
        errors = []
        app = limit(->(env) { [200, {}, [env["limitgate.decision"].inspect]] },
                    **way, tenant: "acme", fail_open: fail_open, settle: settle, on_error: ->(e) { errors << e })
        start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        status, headers, body = get(app)
        assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - start, :<, 1
        assert_equal 1, errors.size
        assert_equal(fail_open ? [200, "nil"] : [503, body], [status, body])
        assert_equal "no-store", headers["cache-control"] unless fail_open
      end
    end
  end

  def test_an_error_is_written_where_nobody_takes_it
    app = limit(url: "http://127.0.0.1:#{@closed_port}", tenant: "acme")
    _, err = capture_io { assert_equal 200, get(app).first }
    assert_match(/\Alimitgate: .*refused/i, err)
  end

  def test_a_mistake_is_an_error_without_limitgate_too
    app = limit(url: "http://127.0.0.1:#{@closed_port}", tenant: "\xff")
    assert_raises(Limitgate::Rack::DecisionError) { get(app) }
  end

  def test_answers_of_other_servers
    { "HTTP/1.1 404 Not Found" => :mistake, "HTTP/1.1 502 Bad Gateway" => 200, "HTTP/1.1 302 Found" => 200,
      "HTTP/1.1 200 OK" => 200, "SSH-2.0" => 200 }.each do |line, want|
      %w[{} <html> [1]].each do |body|
        errors = []
        app = limit(url: answering("#{line}\r\nContent-Length: #{body.size}\r\n\r\n#{body}"), tenant: "acme", on_error: ->(e) { errors << e })
        got = begin
          get(app).first
        rescue Limitgate::Rack::DecisionError
          :mistake
        end
        assert_equal [want, want == 200 ? 1 : 0], [got, errors.size], "#{line} #{body}"
      end
    end
  end

  # A connection whose response was not read is not used again.
  def test_a_request_that_is_interrupted
    ask = Limitgate::Rack::OverHTTP.new("http://127.0.0.1:#{@silent.addr[1]}", timeout: 5)
    request = Limitgate::Rack.request(tenant: "a", op: nil, ip: nil, cost: 1, dims: nil)
    thread = Thread.new { ask.check(request) }
    first = @silent.accept
    first.readpartial(1000)
    thread.kill.join
    answer = Thread.new { ask.check(request) }
    second = Timeout.timeout(5) { @silent.accept }
    respond(first, true)
    respond(second, false)
    assert_equal false, answer.value.allowed
  end

  def test_a_child_process_has_its_own_connections
    ask = Limitgate::Rack::OverHTTP.new("http://127.0.0.1:#{@silent.addr[1]}", timeout: 5)
    request = Limitgate::Rack.request(tenant: "a", op: nil, ip: nil, cost: 1, dims: nil)
    parent = Thread.new { ask.check(request) }
    respond(@silent.accept, true)
    assert parent.value.allowed
    child = fork { exit!(ask.check(request).allowed ? 0 : 1) }
    respond(Timeout.timeout(5) { @silent.accept }, true)
    assert_predicate Process.wait2(child).last, :success?
  end

  private

  def respond(socket, allowed)
    body = %({"allowed":#{allowed}})
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: #{body.size}\r\n\r\n#{body}")
  end

  # answering returns the URL of a server with one answer.
  def answering(text)
    server = TCPServer.new("127.0.0.1", 0)
    Thread.new do
      socket = server.accept
      socket.readpartial(1000)
      socket.write(text)
      socket.close
      server.close
    end
    "http://127.0.0.1:#{server.addr[1]}"
  end
end
