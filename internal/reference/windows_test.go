package reference_test

import "testing"

func TestASlidingWindowWeighsThePreviousOne(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 10/m, algorithm: sliding_window}`))
	// The units weigh for the 10 s that are left of the window and one more minute.
	expect(t, m, m.Check(start+50*sec, cost(10)), allowed("tenant", 10, 0, 70_000))
	// 10 * (60 - e)/60 + 1 <= 10 where e is 6 s or more.
	expect(t, m, m.Check(start+50*sec, cost(1)), denied("tenant", 10, 0, 16_000, 70_000))
	expect(t, m, m.Check(start+60*sec, cost(1)), denied("tenant", 10, 0, 6_000, 60_000))
	expect(t, m, m.Check(start+65_999*ms, cost(1)), denied("tenant", 10, 0, 1, 54_001))
	expect(t, m, m.Check(start+66*sec, cost(1)), allowed("tenant", 10, 0, 114_000))
	// At half of the window 5 of the previous and 1 of this one weigh.
	expect(t, m, m.Check(start+90*sec, cost(4)), allowed("tenant", 10, 0, 90_000))
	// At the next boundary the 10 of the window before weigh nothing, and 5 all.
	expect(t, m, m.Check(start+120*sec, cost(6)), denied("tenant", 10, 5, 12_000, 60_000))
	expect(t, m, m.Check(start+120*sec, cost(5)), allowed("tenant", 10, 0, 120_000))
}

func TestAPartOfAUnitDoesNotRemain(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 600/m, algorithm: sliding_window}`))
	m.Check(start, cost(1))
	// The unit weighs a sixtieth, so that 599 whole ones are left beside it.
	expect(t, m, m.Peek(start+119*sec, cost(599)), allowed("tenant", 600, 0, 61_000))
	expect(t, m, m.Peek(start+119*sec, cost(600)), denied("tenant", 600, 599, 1_000, 1_000))
	expect(t, m, m.Peek(start+120*sec, cost(600)), allowed("tenant", 600, 0, 120_000))
}

func TestAFixedWindowEndsAtItsBoundary(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 10/15m, algorithm: fixed_window}`))
	// 22:13:00 is two minutes before a quarter.
	expect(t, m, m.Check(start+1, cost(8)), allowed("tenant", 10, 2, 120_000))
	expect(t, m, m.Check(start+1, cost(3)), denied("tenant", 10, 2, 120_000, 120_000))
	expect(t, m, m.Check(start+119_999*ms, cost(3)), denied("tenant", 10, 2, 1, 1))
	expect(t, m, m.Check(start+120*sec, cost(10)), allowed("tenant", 10, 0, 900_000))
}

func TestWindowsOfTheCalendar(t *testing.T) {
	const hour = 3_600_000
	for name, test := range map[string]struct {
		rate, zone, at string
		reset          int64
	}{
		"day in UTC":                {"10/day", "UTC", "2024-03-31T00:00:00Z", 24 * hour},
		"day of 23 hours":           {"10/day", "Europe/Berlin", "2024-03-30T23:00:00Z", 23 * hour},
		"end of the day before":     {"10/day", "Europe/Berlin", "2024-03-30T22:59:59Z", 1000},
		"day of 25 hours":           {"10/day", "Europe/Berlin", "2024-10-26T22:00:00Z", 25 * hour},
		"day before a skipped hour": {"10/day", "America/Sao_Paulo", "2018-11-03T03:00:00Z", 24 * hour},
		"day without a midnight":    {"10/day", "America/Sao_Paulo", "2018-11-04T03:00:00Z", 23 * hour},
		"month that loses an hour":  {"10/month", "Europe/Berlin", "2024-02-29T23:00:00Z", (31*24 - 1) * hour},
		"last day of that month":    {"10/month", "Europe/Berlin", "2024-03-31T00:00:00Z", 22 * hour},
		"end of that month":         {"10/month", "Europe/Berlin", "2024-03-31T21:59:59Z", 1000},
		"month that gains an hour":  {"10/month", "Europe/Berlin", "2024-09-30T22:00:00Z", (31*24 + 1) * hour},
		"month with a leap day":     {"10/month", "UTC", "2024-02-01T00:00:00Z", 29 * 24 * hour},
		"last month of a year":      {"10/month", "UTC", "2023-12-31T23:00:00Z", hour},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, plan(`{id: quota, by: [tenant], rate: `+test.rate+
				`, algorithm: fixed_window, timezone: `+test.zone+`}`))
			now := instant(t, test.at)
			expect(t, m, m.Check(now, cost(10)), allowed("quota", 10, 0, test.reset))
			expect(t, m, m.Check(now, cost(1)), denied("quota", 10, 0, test.reset, test.reset))
			next := now + test.reset*ms
			expect(t, m, m.Check(next-1, cost(1)), denied("quota", 10, 0, 1, 1))
			if d := m.Check(next, cost(1)); d.Remaining != 9 {
				t.Errorf("the next window has %d left of 10:\n%s", d.Remaining, m.Trace())
			}
		})
	}
}

func TestASlidingLogKeepsUnitsForAPeriod(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 3/m, algorithm: sliding_log}`))
	expect(t, m, m.Check(start+50*sec, cost(2)), allowed("tenant", 3, 1, 60_000))
	expect(t, m, m.Check(start+70*sec, cost(1)), allowed("tenant", 3, 0, 60_000))
	expect(t, m, m.Check(start+70*sec, cost(1)), denied("tenant", 3, 0, 40_000, 60_000))
	expect(t, m, m.Check(start+70*sec, cost(3)), denied("tenant", 3, 0, 60_000, 60_000))
	expect(t, m, m.Check(start+110*sec-1, cost(2)), denied("tenant", 3, 0, 1, 20_001))
	expect(t, m, m.Check(start+110*sec, cost(2)), allowed("tenant", 3, 0, 60_000))
}
