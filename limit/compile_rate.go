package limit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit/bucket"
)

// compileRate reads the rate of a limit with its burst and time zone, or its slots.
func (c *compiler) compileRate(spec *RuleSpec, l *Limit) {
	if l.Action != ActionLimit {
		for _, t := range []struct {
			text  Text
			field string
		}{{spec.Rate, "rate"}, {spec.Slots, "slots"}, {spec.Burst, "burst"}, {spec.Algorithm, "algorithm"}, {spec.Cost, "cost"}, {spec.MaxCost, "max_cost"}, {spec.Lease.first(), "lease"}, {spec.Store, "store"}} {
			if t.text.Set() {
				c.fail(t.text.Line, t.field, "action: %s counts nothing: remove one of them", l.Action)
			}
		}
		return
	}
	if l.Params.Algorithm.ExpiresPerUnit() {
		c.checkOneByOne(spec, l)
	}
	if l.Params.Algorithm == bucket.AlgorithmConcurrency {
		c.compileSlots(spec, l)
		return
	}
	unknown := l.Params.Algorithm == 0 // a misspelled one
	if spec.Slots.Set() && unknown {
		return // a misspelling of concurrency
	}
	if spec.Slots.Set() {
		c.fail(spec.Slots.Line, "slots", "only algorithm: concurrency has them: remove slots, or add algorithm: concurrency")
	}
	ok := c.readRate(spec, l)
	capacity, hasBurst := c.compileBurst(spec, l)
	if !ok || unknown {
		c.readZone(spec) // for its mistakes
		return
	}
	c.compileCalendar(spec, l)
	if !hasBurst {
		return
	}
	var err error
	l.Params, err = l.Rate.Params(l.Params.Algorithm, capacity)
	if err != nil {
		field, line := "rate", spec.Rate.Line
		if spec.Burst.Set() {
			field, line = "burst", spec.Burst.Line
		}
		c.fail(line, field, "%s", err)
		return
	}
	c.checkAddressTTL(spec, l)
}

// IsRate reports whether a limits file may have text as a rate, such as 100/m. It may be called concurrently.
func IsRate(text string) bool {
	_, err := bucket.ParseRate(text)
	return err == nil
}

// readRate reads the rate of a limit, and reports whether it has one.
func (c *compiler) readRate(spec *RuleSpec, l *Limit) bool {
	if !spec.Rate.Set() && (misspelled(spec, l) || spec.RateUnread) {
		return false
	}
	if !spec.Rate.Set() {
		c.fail(spec.Line, "rate", "every limit needs one, COUNT/PERIOD, for example 100/s: to refuse or to exempt say action: deny or action: allow instead")
		return false
	}
	var err error
	if l.Rate, err = bucket.ParseRate(spec.Rate.Value); err != nil {
		c.fail(spec.Rate.Line, "rate", "%s: %s", Quote(spec.Rate.Value), err)
		return false
	}
	return true
}

// compileBurst returns the burst of a limit, by default the count of its rate, and reports whether it is without a mistake.
func (c *compiler) compileBurst(spec *RuleSpec, l *Limit) (int64, bool) {
	if !spec.Burst.Set() {
		return l.Rate.Count, true
	}
	if l.Params.Algorithm != bucket.AlgorithmTokenBucket && l.Params.Algorithm != 0 {
		c.fail(spec.Burst.Line, "burst", "only a token_bucket has one: a %s admits COUNT in each window", l.Params.Algorithm)
		return 0, false
	}
	n, err := bucket.ParseDigits(spec.Burst.Value)
	if err != nil || n < 1 || n > bucket.MaxCapacity {
		text := Quote(spec.Burst.Value) + " is not a burst: write "
		if meant := MeantNumber(spec.Burst.Value); meant > 0 && meant <= bucket.MaxCapacity {
			text += strconv.FormatInt(meant, 10) + ", "
		}
		c.fail(spec.Burst.Line, "burst", "%sa whole number from 1 to %d", text, int64(bucket.MaxCapacity))
		return 0, false
	}
	return n, true
}

// compileCalendar reads the time zone of a rate per day or month.
func (c *compiler) compileCalendar(spec *RuleSpec, l *Limit) {
	calendar := l.Rate.Calendar != bucket.NotCalendar
	if spec.Timezone.Set() && !calendar {
		advice := "remove it"
		if l.Rate.Period == 86400e6 {
			advice = fmt.Sprintf("write rate: %d/day, as a d is any 24 hours", l.Rate.Count)
		}
		c.fail(spec.Timezone.Line, "timezone", "only a rate per day or month of the calendar has one: %s", advice)
	}
	if !calendar {
		return
	}
	l.Zone = c.readZone(spec)
	if l.Params.Algorithm != bucket.AlgorithmFixedWindow {
		c.fail(spec.Rate.Line, "rate", "a rate per %s follows the calendar, which only algorithm: fixed_window can: write %d/%s, or that algorithm",
			l.Rate.Text[strings.IndexByte(l.Rate.Text, '/')+1:], l.Rate.Count, map[bucket.CalendarUnit]string{bucket.CalendarDay: "24h", bucket.CalendarMonth: "30d"}[l.Rate.Calendar])
		return
	}
	l.Params.Algorithm = bucket.AlgorithmCalendarWindow
	l.calendar = bucket.NewCalendar(l.Rate.Calendar, l.Zone)
}
