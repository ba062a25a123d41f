package commands

import (
	"bytes"
	"slices"
	"strings"
)

// optionNames are the options with their values, in the order of the bits of option.
var optionNames = []string{"ID id", "HEADERS", "TTL ms", "BYPASS token", "LIMIT id"}

// joined returns how to write the first of some words, which is an option of o that is joined to its value, as in ID=7 and DIM:user, or
// that has dashes; or "". Named is that word for an error, without the token of BYPASS.
func (o option) joined(words [][]byte) (named, advice string) {
	name, value, hasValue := splitOption(words[0])
	if len(name) == len(words[0]) {
		return "", ""
	}
	option := strings.ToUpper(string(name))
	form := o.form(option)
	const blank, dashes = "a blank stands between an option and its value: write ", "options have no dashes: write "
	switch named = quote(words[0]); {
	case form == "":
		return "", ""
	case form == option && hasValue: // HEADERS
		return named, "it has no value: write " + option
	case !hasValue && option == "DIM" && len(words) > 1 && bytes.IndexByte(words[1], '=') > 0:
		return named, dashes + dimensionMeant(words[1], words[2:])
	case !hasValue && option == "DIM":
		return named, dashes + dimensionMeant(nil, words[1:])
	case !hasValue:
		return named, dashes + form
	case option == "BYPASS":
		return option, blank + form
	case option == "DIM":
		return named, blank + dimensionMeant(value, words[1:])
	case len(value) == 0:
		return named, blank + form
	}
	return named, blank + option + " " + quote(value)
}

// splitOption splits a word without its dashes at the first = or :, if it has one.
func splitOption(word []byte) (name, value []byte, hasValue bool) {
	name = bytes.TrimLeft(word, "-")
	if at := bytes.IndexAny(name, "=:"); at >= 0 {
		return name[:at], name[at+1:], true
	}
	return name, nil, false
}

// form returns an option of o with a placeholder for its value, or "" if a name in capitals is none.
func (o option) form(name string) string {
	if name == "DIM" {
		return "DIM name value"
	}
	i := slices.IndexFunc(optionNames, func(form string) bool { return strings.Split(form, " ")[0] == name })
	if i < 0 || o&(1<<i) == 0 {
		return ""
	}
	return optionNames[i]
}

// dimensionMeant returns a dimension as it is written, of the text that is joined to DIM and the words behind it.
func dimensionMeant(joined []byte, behind [][]byte) string {
	name, value := "name", "value"
	if at := bytes.IndexAny(joined, "=:"); at > 0 {
		name, joined = quote(joined[:at]), joined[at+1:]
		if len(joined) > 0 {
			return "DIM " + name + " " + quote(joined)
		}
	} else if len(joined) > 0 && at < 0 {
		name = quote(joined)
	} else if len(behind) > 0 && !isOption(behind[0]) {
		name, behind = quote(behind[0]), behind[1:]
	}
	if len(behind) > 0 && !isOption(behind[0]) {
		value = quote(behind[0])
	}
	return "DIM " + name + " " + value
}
