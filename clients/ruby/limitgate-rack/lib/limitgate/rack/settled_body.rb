# frozen_string_literal: true

module Limitgate
  module Rack
    # SettledBody is the body of a response that calls a block once, when it is closed. Everything
    # else the body of the application answers.
    class SettledBody
      def initialize(body, &after)
        @body = body
        @after = after
        @closed = false
      end

      def close
        return if @closed

        @closed = true
        begin
          @body.close if @body.respond_to?(:close)
        ensure
          @after.call
        end
      end

      def respond_to_missing?(name, include_all = false)
        @body.respond_to?(name, include_all)
      end

      def method_missing(name, *args, &block)
        return super unless @body.respond_to?(name)
        return @body.public_send(name, *args, &block) unless name == :to_ary

        # Who takes the body as an Array does not close it: Rack says that to_ary does.
        begin
          @body.to_ary
        ensure
          close
        end
      end
    end
  end
end
