package judge

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// kind is the kind of an operation.
type kind uint8

const (
	check kind = iota
	peek
	reserve
	acquire
	commit
	cancel
	release
	renew
	refund
	reset
	reload  // switch to another limits file
	advance // advance the time
)

var kindNames = [...]string{
	check: "check", peek: "peek", reserve: "reserve", acquire: "acquire", commit: "commit", cancel: "cancel",
	release: "release", renew: "renew", refund: "refund", reset: "reset", reload: "reload", advance: "advance",
}

// operation is one step of a history.
type operation struct {
	kind   kind
	joined bool // in the pipeline of the operation before it
	// Fields of requests.
	tenant, op, ip string
	dims           []limit.Dim
	cost           int64
	id             string
	ttl            int64 // ms; of a renewal 0 for as long as before
	units          int64 // of a commit
	limitID        string
	file           int   // of reload: index of the limits file
	by             int64 // of advance, in microseconds
}

// pipelined reports whether operations of the kind are decided in batches.
func (k kind) pipelined() bool { return k == check || k == reserve || k == acquire }

// decides reports whether the answer is a decision.
func (k kind) decides() bool { return k.pipelined() || k == peek }

// quoted returns a word of the text of a history.
func quoted(s string) string {
	switch {
	case s == "":
		return "-"
	case strings.ContainsAny(s, " \"\\") || s == "-" || !isPrintable(s):
		return strconv.Quote(s)
	}
	return s
}

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) })
}

// String returns the operation as one line of a history's text.
func (o *operation) String() string {
	words := []string{kindNames[o.kind]}
	add := func(more ...string) { words = append(words, more...) }
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	if o.joined {
		words[0] = "& " + words[0]
	}
	switch o.kind {
	case check, peek, reserve, acquire, refund:
		add(quoted(o.tenant), quoted(o.op), quoted(o.ip), number(o.cost))
		if o.kind == reserve || o.kind == acquire {
			add("TTL", number(o.ttl))
		}
		if o.id != "" {
			add("ID", quoted(o.id))
		}
		for _, d := range o.dims {
			add("DIM", quoted(d.Name), quoted(d.Value))
		}
	case commit:
		add(quoted(o.tenant), quoted(o.id), number(o.units))
	case cancel, release:
		add(quoted(o.tenant), quoted(o.id))
	case renew:
		add(quoted(o.tenant), quoted(o.id), number(o.ttl))
	case reset:
		add(quoted(o.tenant), quoted(o.limitID))
	case reload:
		add(number(int64(o.file)))
	case advance:
		add(number(o.by))
	}
	return strings.Join(words, " ")
}

// splitWords splits a line into words and unquotes them.
func splitWords(line string) (words []string, err error) {
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		if line[0] != '"' {
			word, rest, _ := strings.Cut(line, " ")
			if word == "-" {
				word = ""
			}
			words, line = append(words, word), rest
			continue
		}
		text, err := strconv.QuotedPrefix(line)
		if err != nil {
			return nil, fmt.Errorf("read words of %q: %w", line, err)
		}
		word, err := strconv.Unquote(text)
		if err != nil {
			return nil, fmt.Errorf("read words of %q: %w", line, err)
		}
		words, line = append(words, word), line[len(text):]
	}
	return words, nil
}

// parseOperation parses a line that String returned.
func parseOperation(line string) (o operation, err error) {
	line, o.joined = strings.CutPrefix(line, "& ")
	words, err := splitWords(line)
	if err != nil || len(words) == 0 {
		return o, fmt.Errorf("read operation %q: %w", line, err)
	}
	found := false
	for k, name := range kindNames {
		if name == words[0] {
			o.kind, found = kind(k), true
		}
	}
	if !found {
		return o, fmt.Errorf("read operation %q: there is none of that name", line)
	}
	p := wordParser{words: words[1:]}
	o.read(&p)
	if p.err != nil || len(p.words) > 0 {
		return o, fmt.Errorf("read operation %q: %d words too many: %w", line, len(p.words), p.err)
	}
	return o, nil
}

// wordParser parses one word after the other, and records the first error.
type wordParser struct {
	words []string
	err   error
}

func (p *wordParser) word() string {
	if len(p.words) == 0 {
		p.err = fmt.Errorf("a word is missing")
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

func (p *wordParser) number() int64 {
	n, err := strconv.ParseInt(p.word(), 10, 64)
	if err != nil && p.err == nil {
		p.err = err
	}
	return n
}

func (o *operation) read(p *wordParser) {
	switch o.kind {
	case check, peek, reserve, acquire, refund:
		o.tenant, o.op, o.ip, o.cost = p.word(), p.word(), p.word(), p.number()
		for len(p.words) > 0 && p.err == nil {
			switch p.word() {
			case "TTL":
				o.ttl = p.number()
			case "ID":
				o.id = p.word()
			case "DIM":
				o.dims = append(o.dims, limit.Dim{Name: p.word(), Value: p.word()})
			default:
				p.err = fmt.Errorf("an unknown option")
			}
		}
	case commit:
		o.tenant, o.id, o.units = p.word(), p.word(), p.number()
	case cancel, release:
		o.tenant, o.id = p.word(), p.word()
	case renew:
		o.tenant, o.id, o.ttl = p.word(), p.word(), p.number()
	case reset:
		o.tenant, o.limitID = p.word(), p.word()
	case reload:
		o.file = int(p.number())
	case advance:
		o.by = p.number()
	}
}
