package limit

import (
	"strings"
	"time"
	"unicode/utf8"
)

// readZone reads the time zone of a limit, which is UTC without one.
func (c *compiler) readZone(spec *RuleSpec) *time.Location {
	if !spec.Timezone.Set() {
		return time.UTC
	}
	zone, err := time.LoadLocation(spec.Timezone.Value)
	if err != nil || spec.Timezone.Value == "Local" || spec.Timezone.Value == "" {
		c.fail(spec.Timezone.Line, "timezone", "%s is not an IANA time zone: %s", Quote(spec.Timezone.Value), c.zoneFor(spec.Timezone.Value))
		return time.UTC
	}
	return zone
}

// mostPlaces bounds the texts of which placeZone seeks the zone, as that reads the database of zones several times.
const mostPlaces = 100

// zoneFor says what to write in the place of a text that is no time zone.
func (c *compiler) zoneFor(text string) string {
	switch upper := strings.ToUpper(text); {
	case upper == "UTC" || upper == "GMT" || upper == "Z":
		return "write UTC"
	case strings.HasPrefix(upper, "UTC") || strings.HasPrefix(upper, "GMT") || strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-"):
		return "an offset has no summer time: write the zone of a place, for example Europe/Berlin"
	}
	if c.placesSought++; c.placesSought <= mostPlaces {
		if zone := placeZone(text); zone != "" {
			return "did you mean " + zone + "?"
		}
	}
	return "for example Europe/Berlin"
}

// areas are the first parts of the names of zones.
var areas = []string{"Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"}

// placeZone returns the time zone of a place, such as new york, or of one in other letters, such as europe/paris; or "".
func placeZone(text string) string {
	if len(text) > 40 || !utf8.ValidString(text) {
		return ""
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '_' })
	area, place, hasArea := strings.Cut(titled(strings.Join(words, "_")), "/")
	if hasArea {
		return knownZone(area + "/" + place)
	}
	for _, other := range areas {
		if zone := knownZone(other + "/" + area); zone != "" {
			return zone
		}
	}
	return ""
}

// knownZone returns the name of a zone if there is one, or "".
func knownZone(name string) string {
	if _, err := time.LoadLocation(name); err != nil {
		return ""
	}
	return name
}

// titled returns a text whose words begin in capitals.
func titled(text string) string {
	out := []byte(strings.ToLower(text))
	for i := range out {
		if (i == 0 || out[i-1] == '_' || out[i-1] == '/') && 'a' <= out[i] && out[i] <= 'z' {
			out[i] -= 'a' - 'A'
		}
	}
	return string(out)
}
