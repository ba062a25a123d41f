# frozen_string_literal: true

require_relative "helper"
require "net/http"

class RetryTest < Minitest::Test
  # response returns a response of Net::HTTP.
  def response(status, after = nil)
    response = Net::HTTPResponse.send(:response_class, status.to_s).new("1.1", status.to_s, "")
    response["Retry-After"] = after.to_s if after
    response
  end

  # run returns the status of the last response, and the waits.
  def run_retry(*responses, **options)
    waits = []
    last = Limitgate::Rack.retry(random: -> { 0.5 }, wait: ->(seconds) { waits << seconds }, **options) { |n| responses[n - 1] }
    [last.code.to_i, waits]
  end

  def test_it_waits_for_retry_after_and_a_random_time
    assert_equal [200, []], run_retry(response(200))
    assert_equal [500, []], run_retry(response(500))
    assert_equal [200, [2.1]], run_retry(response(429, 2), response(200))
    assert_equal [200, [1.1, 0.2, 0.4]], run_retry(response(429, 1), response(503), response(429), response(200))
    assert_equal [200, [0.1]], run_retry(response(429, "Wed, 21 Oct 2026 07:28:00 GMT"), response(200))
    assert_equal [200, [0.1]], run_retry(response(429, "-5"), response(200))
  end

  def test_it_gives_up
    assert_equal [429, [1.1, 1.2, 1.4]], run_retry(*Array.new(4) { response(429, 1) })
    assert_equal [429, []], run_retry(response(429, 1), attempts: 1)
    assert_equal [429, []], run_retry(response(429, 61))
    assert_equal [429, []], run_retry(response(429, 2_592_000))
    assert_equal [429, []], run_retry(response(429, "9" * 30))
    assert_equal [429, []], run_retry(response(429, 2), max_wait: 2)
  end

  def test_the_defaults_wait
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    last = Limitgate::Rack.retry(base: 0.01) { |n| response(n == 3 ? 200 : 503) }
    assert_equal "200", last.code
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - start, :<, 0.5
  end
end
