# frozen_string_literal: true

Gem::Specification.new do |spec|
  spec.name = "limitgate-rack"
  spec.version = "1.0.0"
  spec.summary = "Rate limits by Limitgate for Rack, Rails and Sinatra"
  spec.authors = ["The Limitgate authors"]
  spec.license = "Apache-2.0"
  spec.homepage = "https://github.com/limitgate/limitgate"
  spec.required_ruby_version = ">= 2.7"
  spec.files = Dir.chdir(__dir__) { Dir["lib/**/*.rb"] + ["README.md"] }
  spec.require_paths = ["lib"]
end
