package limiter_test

import "github.com/limitgate/limitgate/limit"

// The stores of these tests answer at once: Start is Take.

func (s *lender) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, _ func(uint64), _ uint64) func() bool {
	s.Take(at, items, calls)
	return nil
}

func (s *spy) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, _ func(uint64), _ uint64) func() bool {
	s.Take(at, items, calls)
	return nil
}

func (c *counted) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, _ func(uint64), _ uint64) func() bool {
	c.Take(at, items, calls)
	return nil
}

func (s *slow) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, _ func(uint64), _ uint64) func() bool {
	s.Take(at, items, calls)
	return nil
}

func (s *failingStore) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, _ func(uint64), _ uint64) func() bool {
	s.Take(at, items, calls)
	return nil
}
