# frozen_string_literal: true

require "ipaddr"

module Limitgate
  # Middleware that asks Limitgate before each request, and what it asks with.
  module Rack
    # A DecisionError is a mistake in a call, such as a tenant that is too long. It is not that
    # Limitgate cannot be reached.
    class DecisionError < StandardError; end

    # A Decision is the answer to a check or a reservation.
    #
    # limit is the capacity of the limit that decided, -1 without one. retry_after_ms is 0 if the
    # request is allowed, and -1 if it can never be allowed. headers has the HTTP header fields, with
    # names in lower case. id is that of a reservation, or nil.
    Decision = Struct.new(:allowed, :limit, :remaining, :retry_after_ms, :reset_after_ms, :limit_id,
                          :source, :headers, :id, keyword_init: true)

    # A Request is what Limitgate decides about: texts in UTF-8, an Integer as cost, and dimensions
    # as a Hash of texts.
    Request = Struct.new(:tenant, :op, :ip, :cost, :dims, keyword_init: true)

    # MAX_BYTES bounds the texts of a request together. The server takes less than this. It closes
    # the connection of a client that sends far more, which would look as if it could not be reached.
    MAX_BYTES = 10 * 1024

    # asker returns an object that asks over a Redis client, or over the URL of limitgate serve
    # --http. It has the methods check, reserve and commit.
    def self.asker(client:, url:, timeout:, authorization:)
      raise ArgumentError, "limitgate: give a client or a url, not both" if client && url
      return OverHTTP.new(url, timeout: timeout, authorization: authorization) if url
      return OverRedis.new(client) if client.respond_to?(:call)

      raise ArgumentError, "limitgate: give a client of redis-rb, a pool of redis-client, or the url of " \
                           "limitgate serve --http"
    end

    # request returns a Request, or raises DecisionError. An op or ip of nil or "" stands for none.
    def self.request(tenant:, op:, ip:, cost:, dims:)
      cost = 1 if cost.nil?
      raise DecisionError, "cost must be an integer: #{cost.inspect}" unless cost.is_a?(Integer)
      raise DecisionError, "the option tenant gives nil for this request: it has to give a text" if tenant.nil?

      raise DecisionError, "dims must be a Hash of names and texts" unless dims.nil? || dims.respond_to?(:to_hash)

      lacking = (dims || {}).to_hash.find { |_name, value| value.nil? || value == "" }
      raise DecisionError, "the dimension #{lacking.first} is #{lacking.last.inspect}: leave it out" if lacking

      request = Request.new(
        tenant: text(tenant), op: text_or_dash(op), ip: text_or_dash(ip), cost: cost,
        dims: (dims || {}).to_hash.to_h { |name, value| [text(name), text(value)] }
      )
      bytes = [request.tenant, request.op, request.ip, *request.dims.flatten].sum(&:bytesize)
      raise DecisionError, "tenant, op, ip and dims have #{bytes} bytes, at most #{MAX_BYTES}" if bytes > MAX_BYTES

      request
    end

    # MAX_OP bounds an op, in bytes.
    MAX_OP = 1024

    # default_op makes an op of a method and a path that a client chose: it has no control characters,
    # is UTF-8, and is not too long to be one.
    def self.default_op(text)
      op = text.dup.force_encoding(Encoding::UTF_8).scrub("").gsub(/[[:cntrl:]]/, "")
      op.byteslice(0, MAX_OP).scrub("")
    end

    # default_ip returns the address of a peer without its zone, or nil for what is no address.
    def self.default_ip(remote)
      IPAddr.new(remote.to_s.sub(/%.*/, "")).to_s
    rescue IPAddr::Error
      nil
    end

    # text returns a value as text in UTF-8. Servers give the texts of a request as bytes.
    def self.text(value)
      text = value.to_s.dup.force_encoding(Encoding::UTF_8)
      raise DecisionError, "#{text.byteslice(0, 64).inspect} is not UTF-8" unless text.valid_encoding?

      text
    end

    def self.text_or_dash(value)
      text = text(value)
      text.empty? ? "-" : text
    end

    private_class_method :text, :text_or_dash
  end
end

require_relative "over_http"
require_relative "over_redis"
