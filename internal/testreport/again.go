package main

import (
	"regexp"
	"slices"
	"strings"
)

// forTests are the variables that tests depend on.
var forTests = []string{"CGO_ENABLED", "LIMITGATE_REDIS_BIN", "LIMITGATE_MOTO", "LIMITGATE_DYNAMODB", "LIMITGATE_WITHOUT_AWS"}

// again returns the shell command that repeats a failed test of a go test with arguments.
func again(environ, arguments []string, f failure) string {
	var words []string
	for _, name := range forTests {
		for _, pair := range environ {
			if value, found := strings.CutPrefix(pair, name+"="); found {
				words = append(words, name+"="+quote(value))
			}
		}
	}
	words = append(words, "go", "test")
	for _, argument := range arguments {
		if strings.HasPrefix(argument, "-") && argument != "-json" && !strings.HasPrefix(argument, "-run=") {
			words = append(words, quote(argument))
		}
	}
	if f.Test != "" {
		words = append(words, "-run", quote(pattern(f.Test)))
	}
	packages := []string{f.Package}
	if f.Package == "" {
		packages = slices.DeleteFunc(slices.Clone(arguments), func(s string) bool { return strings.HasPrefix(s, "-") })
	}
	for _, name := range packages {
		words = append(words, quote(name))
	}
	return strings.Join(words, " ")
}

// pattern returns the -run pattern of one test.
func pattern(test string) string {
	names := strings.Split(test, "/")
	for i, name := range names {
		names[i] = "^" + regexp.QuoteMeta(name) + "$"
	}
	return strings.Join(names, "/")
}

var plain = regexp.MustCompile(`^[-\w@%+=:,./]+$`)

// quote quotes a word for a shell.
func quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
