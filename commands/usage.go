package commands

import (
	"slices"
	"strings"
)

// argument is an argument in the reply of COMMAND DOCS, from which redis-cli makes its
// hints.
type argument struct {
	name, kind    string
	token         string // a word before the value, or without one
	optional      bool
	multiple      bool // may be repeated
	multipleToken bool // the token is repeated as well
	within        []argument
	text          string // in the usage
}

// integers are the arguments that are integers.
var integers = []string{
	"cost", "estimate", "actual", "ms", "n", "max_burst", "count", "count_per_period", "tokens_per_period", "period", "quantity",
	"protover", "index", "client-id", "slot",
}

// parseUsage parses the usage of a row into arguments. Words in capitals are literal, and
// others are values; [...] is optional, | separates choices, and repeated arguments are
// written as [key [key ...]] or key [key ...].
func parseUsage(usage string) []argument {
	p := usageParser{strings.Fields(strings.NewReplacer("[", " [ ", "]", " ] ", "|", " | ").Replace(usage))}
	return p.choice()
}

type usageParser struct{ rest []string }

func (p *usageParser) peek() string {
	if len(p.rest) == 0 {
		return ""
	}
	return p.rest[0]
}

func (p *usageParser) next() string {
	word := p.peek()
	if word != "" {
		p.rest = p.rest[1:]
	}
	return word
}

// choice parses until the end of the usage or of a bracket.
func (p *usageParser) choice() []argument {
	choices := [][]argument{p.sequence()}
	for p.peek() == "|" {
		p.next()
		choices = append(choices, p.sequence())
	}
	if len(choices) == 1 {
		return choices[0]
	}
	of := make([]argument, len(choices))
	for i, c := range choices {
		of[i] = block(c)
	}
	return []argument{{name: of[0].name, kind: "oneof", within: of, text: join(of, " | ")}}
}

// sequence parses consecutive arguments.
func (p *usageParser) sequence() (seq []argument) {
	for {
		switch word := p.peek(); word {
		case "", "|", "]":
			return seq
		case "...":
			p.next()
			seq = append(seq, argument{text: "..."})
		case "[":
			p.next()
			inner := p.choice()
			p.next() // the closing bracket
			seq = addOptional(seq, inner)
		default:
			p.next()
			seq = append(seq, p.word(word))
		}
	}
}

// word parses a value, or a token and the values after it.
func (p *usageParser) word(word string) argument {
	if !isToken(word) {
		return value(word)
	}
	var values []argument
	for isValue(p.peek()) {
		values = append(values, value(p.next()))
	}
	a := argument{name: strings.ToLower(word), kind: "pure-token"}
	switch len(values) {
	case 0:
	case 1:
		a = values[0]
	default:
		a.kind, a.within = "block", values
	}
	a.token = word
	a.text = strings.TrimSpace(word + " " + join(values, " "))
	return a
}

// addOptional adds the content of brackets: an optional argument, or the mark that the
// arguments before it may be repeated.
func addOptional(seq, inner []argument) []argument {
	if n := len(inner); n > 1 && inner[n-1].text == "..." && repeat(&seq, join(inner[:n-1], " ")) {
		return seq
	}
	a := block(inner)
	a.optional = true
	a.text = "[" + a.text + "]"
	return append(seq, a)
}

// repeat marks the end of a sequence, which must have the usage again, as repeatable.
// After a token the value alone may be repeated.
func repeat(seq *[]argument, again string) bool {
	for from := range *seq {
		if join((*seq)[from:], " ") != again {
			continue
		}
		a := block(slices.Clone((*seq)[from:]))
		a.multiple, a.multipleToken = true, a.token != ""
		a.text += " [" + again + " ...]"
		*seq = append((*seq)[:from], a)
		return true
	}
	if n := len(*seq); n > 0 {
		last := &(*seq)[n-1]
		last.multiple = last.token != "" && last.text == last.token+" "+again
		return last.multiple
	}
	return false
}

// block makes one argument of several.
func block(seq []argument) argument {
	if len(seq) == 1 && !seq[0].optional {
		return seq[0]
	}
	a := argument{kind: "block", within: seq, text: join(seq, " ")}
	if len(seq) > 0 {
		a.name = seq[0].name
	}
	return a
}

func value(name string) argument {
	kind := "string"
	if slices.Contains(integers, name) {
		kind = "integer"
	}
	return argument{name: name, kind: kind, text: name}
}

func join(args []argument, between string) string {
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.text
	}
	return strings.Join(texts, between)
}

// isToken reports whether a word of a usage is literal.
func isToken(word string) bool {
	return word != "" && word[0] >= 'A' && word[0] <= 'Z' && strings.ToUpper(word) == word
}

func isValue(word string) bool {
	return word != "" && word != "[" && word != "]" && word != "|" && word != "..." && !isToken(word)
}
