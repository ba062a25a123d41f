package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Differences describes the differences between two bodies for people, value by value:
// `a.b: 1 -> 2`, `+a.b: 2` for a new value and `-a.b: 1` for a removed one. Elements of
// a list are named by their id, if they have one.
func Differences(before, after json.RawMessage) (differences []string) {
	was, is := leaves(before), leaves(after)
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		a, hadIt := was[path]
		b, hasIt := is[path]
		switch {
		case !hadIt:
			differences = append(differences, fmt.Sprintf("+%s: %s", path, b))
		case !hasIt:
			differences = append(differences, fmt.Sprintf("-%s: %s", path, a))
		case a != b:
			differences = append(differences, fmt.Sprintf("%s: %s -> %s", path, a, b))
		}
	}
	if len(differences) == 0 && !Equal(before, after) {
		return []string{"in another order"}
	}
	return differences
}

// leaves returns the values in a body, by their paths.
func leaves(body json.RawMessage) map[string]string {
	found := map[string]string{}
	if len(body) == 0 {
		return found
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if !json.Valid(body) || decoder.Decode(&value) != nil {
		value = string(body)
	}
	addLeaves(found, "", value)
	return found
}

func addLeaves(found map[string]string, path string, value any) {
	below := path
	if path != "" {
		below += "."
	}
	switch v := value.(type) {
	case map[string]any:
		for name, element := range v {
			addLeaves(found, below+Printable(name), element)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		ids := idsOf(v)
		for i, element := range v {
			addLeaves(found, below+ids[i], element)
		}
		if len(v) > 0 {
			return
		}
	}
	if path == "" {
		path = "body"
	}
	found[path] = leaf(value)
}

// idsOf returns the names of the elements of a list: their ids, or else their indexes.
func idsOf(list []any) []string {
	ids, seen := make([]string, len(list)), map[string]bool{}
	for i, element := range list {
		object, _ := element.(map[string]any)
		id, ok := object["id"].(string)
		if !ok || seen[id] {
			for j := range list {
				ids[j] = strconv.Itoa(j)
			}
			return ids
		}
		ids[i], seen[id] = Printable(id), true
	}
	return ids
}

func leaf(value any) string {
	if text, ok := value.(string); ok {
		return Printable(text)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return Printable(fmt.Sprint(value))
	}
	return string(text)
}

// Printable returns a text unchanged, or quoted if a terminal would interpret it or it
// would look like several lines.
func Printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.QuoteToGraphic(text)
	}
	return text
}
