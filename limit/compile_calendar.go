package limit

import (
	"fmt"
	"strings"

	"github.com/limitgate/limitgate/limit/bucket"
)

// The m of a rate is a minute, and elsewhere often a month.

// perMinute reports whether a limit counts by the minute, and perMonth by the month of the calendar.
func (l *Limit) perMinute() bool {
	return l.hasRate() && l.Rate.Calendar == bucket.NotCalendar && l.Rate.Period == 60e6
}
func (l *Limit) perMonth() bool { return l.hasRate() && l.Rate.Calendar == bucket.CalendarMonth }

// hasRate reports whether a limit has a rate.
func (l *Limit) hasRate() bool { return l.Action == ActionLimit && !l.slots }

// warnMinutes warns of limits of plans that count by the minute, and by the month in another plan, or whose ids say month.
func (c *compiler) warnMinutes() {
	byMonth := map[string]*Limit{}
	for _, spec := range c.doc.Plans {
		for _, l := range c.plans[spec.Name.Value].limits {
			if l.perMonth() {
				byMonth[l.ID] = l
			}
		}
	}
	for _, spec := range c.doc.Plans {
		for _, l := range c.plans[spec.Name.Value].limits {
			said, isNote := "", false
			switch other := byMonth[l.ID]; {
			case !l.perMinute():
			case other != nil:
				said = fmt.Sprintf("by the month in plan %s, %s", other.Plan, other.Rate.Text)
			case strings.Contains(strings.ToLower(l.ID), "month"):
				said, isNote = "its id says month", len(l.when) > 0 // such as one for reports of a month
			}
			if said == "" {
				continue
			}
			with := ""
			if l.Params.Algorithm != bucket.AlgorithmFixedWindow {
				with = ", with algorithm: fixed_window"
			}
			c.warn(l.Line, "rate", "%s counts by the minute, %s, and %s: write %d/month if that is meant%s", Quote(l.ID), l.Rate.Text, said, l.Rate.Count, with)
			c.warnings[len(c.warnings)-1].Note = isNote
		}
	}
}

// warnCalendar warns of an override that counts by a shorter time than the day or the month of its limit, or by the month where that
// counts by the minute. It warns once for a limit. No id has the blanks of its keys.
func (c *compiler) warnCalendar(o *RuleSpec, field string, of, l *Limit) {
	const day = 24 * 60 * 60e6
	if !o.Rate.Set() || !l.hasRate() || !of.hasRate() {
		return
	}
	unit := ""
	switch {
	case of.Rate.Calendar == bucket.CalendarMonth && l.Rate.Calendar != bucket.CalendarMonth:
		unit = "month"
	case of.Rate.Calendar == bucket.CalendarDay && l.Rate.Calendar == bucket.NotCalendar && l.Rate.Period <= day:
		unit = "day"
	}
	switch {
	case unit != "":
		text := fmt.Sprintf("%s counts by the %s, %s, and for this tenant by %s: write %d/%s if that is meant", Quote(l.ID), unit, of.Rate.Text, l.Rate.Text, l.Rate.Count, unit)
		c.warnOnce([3]string{l.Plan, l.ID, "by the " + unit}, o.Rate.Line, field+"."+l.ID+".rate", text)
	case of.perMinute() && l.perMonth():
		text := fmt.Sprintf("%s counts by the minute, %s: write %d/m if that is meant", Quote(l.ID), of.Rate.Text, l.Rate.Count)
		c.warnOnce([3]string{l.Plan, l.ID, "by the minute"}, o.Rate.Line, field+"."+l.ID+".rate", text)
	}
}
