# frozen_string_literal: true

module Limitgate
  module Rack
    # OverRedis asks over a client of redis-rb, or a pool of redis-client, by its method call. The
    # timeouts are those of the client.
    class OverRedis
      # ERROR_REPLIES are the classes of error replies. They are known by name, so that neither
      # library is required.
      ERROR_REPLIES = ["Redis::CommandError", "RedisClient::CommandError"].freeze

      # OF_REDIS matches the reply of a Redis to commands that it does not have.
      OF_REDIS = /\A(ERR )?unknown command ['`]?RL\./i
      NO_LIMITGATE = "the server is a Redis, and no limitgate: give a client that is connected to " \
                     "the address of limitgate serve --listen"

      def initialize(client)
        # Two threads that use a RedisClient at once can get the replies of each other.
        if client.class.name == "RedisClient"
          raise ArgumentError, "limitgate: a RedisClient is for one thread; give a pool: config.new_pool"
        end

        @client = client
      end

      # check decides about a request, and takes its cost.
      def check(request)
        decision(call("RL.CHECK", *words(request)))
      end

      # reserve takes an estimated cost. The decision has an id to settle it by.
      def reserve(request)
        decision(call("RL.RESERVE", *words(request)))
      end

      # commit settles a reservation to what was used. It returns whether it did.
      def commit(id, actual)
        call("RL.COMMIT", id, actual.to_s) == 1
      end

      private

      def words(request)
        dims = request.dims.flat_map { |name, value| ["DIM", name, value] }
        [request.tenant, request.op, request.ip, request.cost.to_s, *dims, "HEADERS"]
      end

      def call(*words)
        @client.call(*words)
      rescue StandardError => e
        raise DecisionError, NO_LIMITGATE if OF_REDIS.match?(e.message)
        raise DecisionError, e.message if error_reply?(e)

        raise
      end

      # error_reply? tells error replies from connections that fail. Since its version 5,
      # redis-rb raises a CannotConnectError for a wrong password, whose cause is the error reply. A
      # proxy that has as many clients as it takes cannot be reached.
      def error_reply?(error)
        return false if error.message.include?("max number of clients")

        [error, error.cause].compact.any? do |e|
          e.class.ancestors.any? { |ancestor| ERROR_REPLIES.include?(ancestor.name) }
        end
      end

      # decision names the elements of a reply. A reservation has an id at the end, which is empty if
      # the request is denied.
      def decision(reply)
        raise "the reply is no decision" unless reply.is_a?(Array) && reply.size >= 8

        allowed, limit, remaining, retry_after, reset_after, limit_id, source, fields, id = reply
        Decision.new(
          allowed: allowed == 1, limit: limit, remaining: remaining, retry_after_ms: retry_after,
          reset_after_ms: reset_after, limit_id: limit_id, source: source,
          headers: fields.each_slice(2).to_h { |name, value| [name.downcase, value] },
          id: id.to_s.empty? ? nil : id
        )
      end
    end
  end
end
