# frozen_string_literal: true

require "json"
require_relative "ask"
require_relative "settled_body"

module Limitgate
  module Rack
    # Limit is middleware that asks Limitgate before each request, and answers 429 to one that is
    # denied. The README has a table of its options.
    class Limit
      # DECISION is the key of env with the Decision, or with nil if there is none.
      DECISION = "limitgate.decision"

      # MAX_TIMEOUT is an hour, in seconds.
      MAX_TIMEOUT = 3600

      def initialize(app, tenant:, client: nil, url: nil, timeout: 0.25, authorization: nil, op: nil, ip: nil,
                     cost: 1, dims: nil, settle: nil, fail_open: true, on_denied: nil, on_error: nil)
        check_options(timeout: timeout, fail_open: fail_open, settle: settle, on_denied: on_denied, on_error: on_error)
        @app = app
        @ask = Rack.asker(client: client, url: url, timeout: timeout, authorization: authorization)
        @tenant = tenant
        @op = op || ->(env) { Rack.default_op("#{env["REQUEST_METHOD"]} #{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}") }
        @ip = ip || ->(env) { Rack.default_ip(env["REMOTE_ADDR"]) }
        @cost = cost
        @dims = dims
        @settle = settle
        @fail_open = fail_open
        @on_denied = on_denied || ->(_env, decision) { denied(decision) }
        way = fail_open ? "goes on" : "is refused"
        @on_undecided = on_error || ->(error) { warn "limitgate: a request #{way} without a decision: #{error.message}" }
        @on_unsettled = on_error || ->(error) { warn "limitgate: the true cost of a request is not settled: #{error.message}" }
      end

      # call answers a request. It raises DecisionError for a mistake in the call: a mistake is no way
      # past the limits.
      def call(env)
        decision = decide(request(env))
        env[DECISION] = decision
        if decision.nil?
          @fail_open ? @app.call(env) : unavailable
        elsif !decision.allowed
          with_fields(@on_denied.call(env, decision), decision)
        elsif decision.id
          with_fields(settled(env, decision), decision)
        else
          with_fields(@app.call(env), decision)
        end
      end

      private

      # check_options raises ArgumentError for values that would fail in each request, or be taken for others.
      def check_options(timeout:, fail_open:, **functions)
        unless timeout.is_a?(Numeric) && timeout.real? && timeout.between?(0.001, MAX_TIMEOUT)
          raise ArgumentError, "limitgate: the timeout is #{shown(timeout)}: it is a number of seconds, such as 0.25"
        end
        unless [true, false].include?(fail_open)
          raise ArgumentError, "limitgate: fail_open is #{shown(fail_open)}: it is true or false"
        end

        functions.each do |name, value|
          next if value.nil? || value.respond_to?(:call)

          raise ArgumentError, "limitgate: #{name} is #{shown(value)}: it is a function, such as a lambda"
        end
      end

      # shown returns a value as it stands in code, or the class of an object, which may have secrets.
      def shown(value)
        case value
        when String, Symbol, Numeric, true, false, nil then value.inspect[0, 80]
        else "a #{value.class}"
        end
      end

      def request(env)
        Rack.request(tenant: of(@tenant, env), op: of(@op, env), ip: of(@ip, env), cost: of(@cost, env),
                     dims: of(@dims, env))
      end

      # of returns the value of an option, which may be a function of the request.
      def of(option, env)
        option.respond_to?(:call) ? option.call(env) : option
      end

      # decide returns the decision about a request, or nil if Limitgate cannot be reached.
      def decide(request)
        @settle ? @ask.reserve(request) : @ask.check(request)
      rescue DecisionError
        raise
      rescue StandardError => e
        @on_undecided.call(e)
        nil
      end

      # settled returns the response of the application, and settles the reservation when the server
      # closes its body. It settles at once, with the status 500, if the application has no response:
      # it raised or threw.
      def settled(env, decision)
        status, headers, body = @app.call(env)
        responded = true
        [status, headers, SettledBody.new(body) { commit(env, decision, status) }]
      ensure
        commit(env, decision, 500) unless responded
      end

      # commit settles a reservation to the true cost. An error of it or of the option settle leaves
      # the request charged as estimated.
      def commit(env, decision, status)
        actual = @settle.call(env, status)
        raise ArgumentError, "settle gives #{shown(actual)}: it has to give a number" unless actual.is_a?(Numeric)

        @ask.commit(decision.id, [0, actual.ceil].max)
      rescue StandardError => e
        @on_unsettled.call(e)
      end

      # with_fields adds the header fields of a decision to a response. Those of the response stay.
      def with_fields(response, decision)
        status, headers, body = response
        headers = headers.dup # it may be frozen
        decision.headers.each { |name, value| headers[name] = value unless headers.key?(name) }
        [status, headers, body]
      end

      # denied returns the answer to a request that is denied, as RFC 9457 describes it.
      def denied(decision)
        problem(
          429, "Request cannot be satisfied as assigned quota has been exceeded",
          "type" => "https://iana.org/assignments/http-problem-types#quota-exceeded",
          "violated-policies" => [decision.limit_id].reject(&:empty?)
        )
      end

      def unavailable
        problem(503, "Limits cannot be checked")
      end

      def problem(status, title, members = {})
        body = JSON.generate({ "title" => title, "status" => status }.merge(members))
        [status, { "content-type" => "application/problem+json", "cache-control" => "no-store" }, [body]]
      end
    end
  end
end
