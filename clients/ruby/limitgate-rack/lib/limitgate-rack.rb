# frozen_string_literal: true

require_relative "limitgate/rack/ask"
require_relative "limitgate/rack/middleware"
require_relative "limitgate/rack/retry"
