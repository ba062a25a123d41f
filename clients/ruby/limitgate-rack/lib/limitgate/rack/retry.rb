# frozen_string_literal: true

module Limitgate
  module Rack
    # retry calls the block until it returns a response that is not 429 or 503, at most attempts
    # times, and returns the last response. A response is one of Net::HTTP, or has its methods code
    # and []. The block receives the number of the attempt.
    #
    # Between attempts it waits for Retry-After and some of a random time more, so that clients that
    # were denied together do not come back together. The bound of the random time is base seconds,
    # and doubles. It gives up where one wait would be longer than max_wait seconds.
    def self.retry(attempts: 4, base: 0.2, max_wait: 60, random: -> { rand }, wait: ->(seconds) { sleep(seconds) })
      (1..).each do |n|
        response = yield n
        return response if ![429, 503].include?(response.code.to_i) || n >= attempts

        # A Retry-After that is a date counts as none.
        asked = response["Retry-After"].to_s[/\A\d+\z/].to_i
        seconds = asked + random.call * [max_wait, base * 2**(n - 1)].min
        return response if seconds > max_wait

        wait.call(seconds)
      end
    end
  end
end
