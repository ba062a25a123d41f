package rlsconfig

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// scalarKind is the type of a scalar.
type scalarKind uint8

const (
	stringScalar scalarKind = iota
	nullScalar
	boolScalar
	intScalar
	floatScalar // or an integer that int64 does not hold
)

// scalar is a scalar as YAML 1.1 reads it.
type scalar struct {
	kind    scalarKind
	boolean bool
	integer int64
	float   float64 // of an integer too
}

// words are the scalars with a meaning of their own.
var words = map[string]scalar{}

func init() {
	for _, word := range []string{"y", "yes", "true", "on"} {
		addWord(word, scalar{kind: boolScalar, boolean: true})
	}
	for _, word := range []string{"n", "no", "false", "off"} {
		addWord(word, scalar{kind: boolScalar})
	}
	for _, word := range []string{".nan", ".NaN", ".NAN"} {
		words[word] = scalar{kind: floatScalar, float: math.NaN()}
	}
	addWord(".inf", scalar{kind: floatScalar, float: math.Inf(1)})
	addWord("+.inf", scalar{kind: floatScalar, float: math.Inf(1)})
	addWord("-.inf", scalar{kind: floatScalar, float: math.Inf(-1)})
	addWord("null", scalar{kind: nullScalar})
	addWord("~", scalar{kind: nullScalar})
	addWord("", scalar{kind: nullScalar})
}

// addWord adds a word in lower case, capitalized, and in upper case.
func addWord(word string, s scalar) {
	words[word], words[strings.ToUpper(word)] = s, s
	if i := strings.IndexFunc(word, func(r rune) bool { return r >= 'a' && r <= 'z' }); i >= 0 {
		words[word[:i]+strings.ToUpper(word[i:i+1])+word[i+1:]] = s
	}
}

// decimal is the syntax of numbers with a fraction or an exponent.
var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// resolvePlain returns the scalar of unquoted text, as envoyproxy/ratelimit reads it: by YAML 1.1
// as yaml.v2 has it, where yes and on are booleans, 010 is eight, 1_000 is a thousand, and a date is a
// string. The project's own parser has the rules of YAML 1.2.
func resolvePlain(text string) scalar {
	if s, ok := words[text]; ok {
		return s
	}
	switch {
	case text == "" || !strings.Contains("+-.0123456789", text[:1]):
		return scalar{}
	case text[0] == '.':
		return parseFloat(text)
	}
	digits := strings.ReplaceAll(text, "_", "")
	if n, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return scalar{kind: intScalar, integer: n, float: float64(n)}
	}
	if n, err := strconv.ParseUint(digits, 0, 64); err == nil {
		return scalar{kind: floatScalar, float: float64(n)}
	}
	if decimal.MatchString(digits) {
		return parseFloat(digits)
	}
	return scalar{}
}

// parseFloat returns the scalar of a number with a fraction or an exponent, or a string.
func parseFloat(text string) scalar {
	if number, err := strconv.ParseFloat(text, 64); err == nil {
		return scalar{kind: floatScalar, float: number}
	}
	return scalar{}
}

// isQuoted reports whether a scalar is a string by its style.
func isQuoted(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

// isNull reports whether a node is the null of YAML.
func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style&yaml.TaggedStyle == 0 && !isQuoted(n) && resolvePlain(n.Value).kind == nullScalar
}
