# frozen_string_literal: true

require_relative "helper"

class SettledBodyTest < Minitest::Test
  def test_it_is_the_body_of_the_application
    closed = 0
    body = Limitgate::Rack::SettledBody.new(%w[a b]) { closed += 1 }
    assert_equal %w[a b], body.each.to_a
    refute_respond_to body, :to_path
    refute_respond_to body, :call
    assert_raises(NoMethodError) { body.to_path }
    assert_equal 0, closed
    2.times { body.close }
    assert_equal 1, closed
  end

  def test_streams
    written = []
    body = Limitgate::Rack::SettledBody.new(->(stream) { stream << "a" }) { written << "closed" }
    refute_respond_to body, :each
    body.call(written)
    body.close
    assert_equal %w[a closed], written
  end

  def test_to_ary_closes
    closed = 0
    body = Limitgate::Rack::SettledBody.new(%w[a b]) { closed += 1 }
    assert_equal %w[a b], body.to_ary
    body.close
    assert_equal 1, closed
    refute_respond_to Limitgate::Rack::SettledBody.new([].each) {}, :to_ary
  end

  def test_a_body_that_cannot_be_closed
    closed = 0
    wrong = Object.new
    def wrong.close
      raise IOError
    end
    assert_raises(IOError) { Limitgate::Rack::SettledBody.new(wrong) { closed += 1 }.close }
    assert_equal 1, closed
  end
end
