package rlsenv

import (
	"math"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// value parses the text of a variable as ratelimit does.
type value struct {
	// form is the right form, for errors, and example a text of it.
	form, example string
	// read stores the text and returns a value that compares equal for equal meanings. It
	// returns false for a text of another form.
	read func(text string) (any, bool)
	// shown reports that a text of another form stands in errors: no secret has a form like this one.
	shown bool
}

// shown returns v with texts of another form in errors.
func shown(v value) value {
	v.shown = true
	return v
}

// plainText matches values that errors may repeat.
var plainText = regexp.MustCompile(`^[A-Za-z0-9_.:/+ -]{1,40}$`)

// subject returns the subject of an error about a text of another form.
func (v value) subject(text string) string {
	switch {
	case v.shown && text == "":
		return "it is empty, and"
	case v.shown && plainText.MatchString(text):
		return strconv.Quote(text)
	}
	return "it"
}

// parsed is a value that parse returns and that is stored in to.
func parsed[T comparable](to *T, form, example string, parse func(text string) (T, bool)) value {
	return value{form: form, example: example, read: func(text string) (any, bool) {
		v, ok := parse(text)
		if ok {
			*to = v
		}
		return v, ok
	}}
}

// anyText takes every text.
func anyText(to *string) value {
	return parsed(to, "a text", "", func(text string) (string, bool) { return text, true })
}

func toggle(to *bool) value {
	return shown(parsed(to, "true or false", "true", func(text string) (bool, bool) {
		v, err := strconv.ParseBool(text)
		return v, err == nil
	}))
}

// duration parses any duration, and elapse one that is not negative.
func duration(to *time.Duration) value {
	return shown(parsed(to, "a duration", "10s", func(text string) (time.Duration, bool) {
		v, err := time.ParseDuration(text)
		return v, err == nil
	}))
}

func elapse(to *time.Duration) value {
	return shown(parsed(to, "a duration of 0 or more", "10s", func(text string) (time.Duration, bool) {
		v, err := time.ParseDuration(text)
		return v, err == nil && v >= 0
	}))
}

// number parses a whole number, which may be hexadecimal.
func number(to *int) value { return between(to, math.MinInt, math.MaxInt, "a whole number", "10") }

func size(to *int) value {
	return between(to, 0, math.MaxInt, "a number of bytes", "4194304")
}

func port(to *int) value {
	return between(to, 0, math.MaxUint16, "the number of a port, 0 to 65535", "8081")
}

func between(to *int, least, most int, form, example string) value {
	return shown(parsed(to, form, example, func(text string) (int, bool) {
		v, err := strconv.ParseInt(text, 0, strconv.IntSize)
		return int(v), err == nil && int(v) >= least && int(v) <= most
	}))
}

// fraction parses a number from 0 to 1.
func fraction(to *float64) value { return decimal(to, 0, 1, "a number from 0 to 1", "0.8") }

func anyDecimal(to *float64) value {
	return decimal(to, -math.MaxFloat64, math.MaxFloat64, "a number", "0.5")
}

func decimal(to *float64, least, most float64, form, example string) value {
	return shown(parsed(to, form, example, func(text string) (float64, bool) {
		v, err := strconv.ParseFloat(text, 64)
		return v, err == nil && v >= least && v <= most
	}))
}

// host parses a host to listen on; empty is every address.
func host(to *string) value {
	return parsed(to, "a host, without a port", "0.0.0.0", func(text string) (string, bool) {
		if strings.Contains(text, ":") {
			_, err := netip.ParseAddr(text)
			return text, err == nil
		}
		return text, !strings.ContainsFunc(text, notInHosts)
	})
}

// notInHosts reports characters that no host has.
func notInHosts(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`/\@[]`, r) }

// listenAddress parses host:port, where the host may be empty.
func listenAddress(to *string) value {
	return parsed(to, "host:port", ":9090", func(text string) (string, bool) {
		return text, isHostPort(text, 0)
	})
}

// isHostPort reports whether text is host:port, where the host may be empty and the port is at least least.
func isHostPort(text string, least uint64) bool {
	name, number, err := net.SplitHostPort(text)
	return err == nil && isPort(number, least) && !strings.ContainsFunc(name, notInHosts)
}

// isPort reports whether text is the number of a port of at least least.
func isPort(text string, least uint64) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n >= least
}

// urlPath parses the path of an HTTP resource.
func urlPath(to *string) value {
	return parsed(to, "a path", "/metrics", func(text string) (string, bool) {
		return text, strings.HasPrefix(text, "/") && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f })
	})
}

// choice parses one of some words, whose case counts.
func choice[T comparable](to *T, form, example string, words map[string]T) value {
	return shown(parsed(to, form, example, func(text string) (T, bool) {
		v, found := words[text]
		return v, found
	}))
}

// foldedChoice parses one of some words in any case. The keys of words are in lower case.
func foldedChoice[T comparable](to *T, form, example string, words map[string]T) value {
	return shown(parsed(to, form, example, func(text string) (T, bool) {
		v, found := words[strings.ToLower(text)]
		return v, found
	}))
}

// pairs parses a list of NAME:VALUE, each with one colon. Pairs that are not valid are refused.
func pairs(to *map[string]string, form, example string, valid func(name, text string) bool) value {
	return value{form: form, example: example, read: func(text string) (any, bool) {
		all := map[string]string{}
		for pair := range strings.SplitSeq(text, ",") {
			if strings.TrimSpace(text) == "" {
				break
			}
			name, v, found := strings.Cut(pair, ":")
			if !found || strings.Contains(v, ":") || !valid(name, v) {
				return nil, false
			}
			all[name] = v
		}
		*to = all
		return text, true
	}}
}

// headers parses headers of gRPC. Their names become lower case.
func headers(to *map[string]string) value {
	var all map[string]string
	v := pairs(&all, "a list of headers NAME:VALUE, each with one colon", "x-team:a,x-zone:b", func(name, text string) bool {
		return isToken(name) && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
	})
	read := v.read
	v.read = func(text string) (any, bool) {
		canonical, ok := read(text)
		if ok {
			*to = map[string]string{}
			for name, v := range all {
				(*to)[strings.ToLower(name)] = v
			}
		}
		return canonical, ok
	}
	return v
}

// tags parses labels of metrics.
func tags() value {
	return pairs(new(map[string]string), "a list of NAME:VALUE, each with one colon", "a:1,b:2", func(string, string) bool { return true })
}

// isToken reports whether text may be the name of a header, see RFC 9110.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
