# frozen_string_literal: true

require "json"
require "net/http"

module Limitgate
  module Rack
    # OverHTTP asks over the URL of limitgate serve --http.
    #
    # It keeps connections open, at most as many as there were calls at the same time. The timeout is
    # in seconds; it bounds connecting, writing and each reading on its own.
    class OverHTTP
      # FIELDS are the header fields of an answer that are for the client of the application.
      FIELDS = %w[
        ratelimit-policy ratelimit ratelimit-limit ratelimit-remaining ratelimit-reset
        ratelimit-near-limit x-ratelimit-near-limit x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset retry-after
      ].freeze

      # KEEP is the time in seconds that an unused connection is kept. The server closes it after 120.
      KEEP = 60

      def initialize(url, timeout:, authorization: nil)
        @url = OverHTTP.parse(url)
        @timeout = timeout
        @fields = { "Content-Type" => "application/json" }
        if authorization.to_s.strip.match?(/[[:cntrl:]]/)
          raise ArgumentError, "limitgate: the authorization has a line break or another control character inside"
        end

        @fields["Authorization"] = authorization if authorization
        @mutex = Mutex.new
        @unused = []
        @pid = Process.pid
      end

      # parse returns an address as a URI.
      def self.parse(url)
        uri = URI(url)
        return uri if uri.is_a?(URI::HTTP) && uri.hostname.to_s != ""

        raise URI::InvalidURIError
      rescue URI::InvalidURIError, ArgumentError
        raise ArgumentError, "limitgate: url is no URL: it is the address of limitgate serve --http, such as " \
                             "http://127.0.0.1:8080"
      end

      # check decides about a request, and takes its cost.
      def check(request)
        decision(post("check", **subject(request), cost: request.cost))
      end

      # reserve takes an estimated cost. The decision has an id to settle it by.
      def reserve(request)
        decision(post("reserve", **subject(request), estimate: request.cost))
      end

      # commit settles a reservation to what was used. It returns whether it did.
      def commit(id, actual)
        JSON.parse(post("commit", id: id, actual: actual).body)["result"] == "done"
      end

      private

      def subject(request)
        { tenant: request.tenant, op: request.op, ip: request.ip, dims: request.dims }
      end

      # MISTAKES are the statuses of a mistake in a call. Any other than 200 says that Limitgate could not
      # answer.
      MISTAKES = %w[400 401 403 404 405 413].freeze

      # post returns the response of an operation, whose status is 200.
      def post(operation, **body)
        response = exchange("/v1/#{operation}", JSON.generate(body))
        case response
        when Net::HTTPOK then response
        else
          raise DecisionError, detail(response) if MISTAKES.include?(response.code)

          raise "Limitgate answers #{response.code}"
        end
      end

      # MAX_ANSWER bounds the bytes of an answer in an error.
      MAX_ANSWER = 300

      # detail returns what a response says is wrong. A server that is not Limitgate says it otherwise.
      def detail(response)
        JSON.parse(response.body).fetch("detail")
      rescue StandardError
        "Limitgate answers #{response.code}: #{response.body.to_s.byteslice(0, MAX_ANSWER).force_encoding(Encoding::UTF_8).scrub("").gsub(/[[:cntrl:]]+/, " ")}"
      end

      # exchange sends a body and returns the response. No other thread has the connection meanwhile,
      # and it is used again only after a whole response: what is left of another one is never read.
      def exchange(path, body)
        connection = take || connect
        response = connection.post(path, body, @fields)
        give_back(connection)
        response
      rescue StandardError => e
        raise "Limitgate at #{@url.scheme}://#{@url.host}:#{@url.port} does not answer: #{e.message}"
      end

      def take
        @mutex.synchronize do
          # After a fork, the connections are those of the parent process.
          @unused.clear if @pid != Process.pid
          @pid = Process.pid
          @unused.pop
        end
      end

      def give_back(connection)
        @mutex.synchronize { @unused.push(connection) }
      end

      # connect opens a connection, past the proxy of the environment variable http_proxy.
      def connect
        http = Net::HTTP.new(@url.hostname, @url.port, nil)
        http.use_ssl = @url.scheme == "https"
        http.open_timeout = http.ssl_timeout = http.write_timeout = http.read_timeout = @timeout
        http.keep_alive_timeout = KEEP
        http.start
      end

      def decision(response)
        answer = JSON.parse(response.body)
        Decision.new(
          allowed: answer.fetch("allowed"), limit: answer["limit"], remaining: answer["remaining"],
          retry_after_ms: answer["retry_after_ms"], reset_after_ms: answer["reset_after_ms"],
          limit_id: answer["limit_id"], source: answer["source"], headers: fields(response), id: answer["id"]
        )
      end

      def fields(response)
        FIELDS.to_h { |name| [name, response[name]] }.compact
      end
    end
  end
end
