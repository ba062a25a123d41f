package commands

// glob reports whether text matches a pattern in Redis' syntax, ignoring case: * ? [a-z]
// [^a] and \x. It backtracks to the last * only, which is sufficient, so that no pattern
// takes longer than its length times the text's.
func glob(pattern []byte, text string) bool {
	p, t := 0, 0
	star, resume := -1, 0
	for t < len(text) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				star, resume = p, t
				p++
				continue
			}
			if next, ok := globOne(pattern, p, text[t]); ok {
				p, t = next, t+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		resume++
		p, t = star+1, resume
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// globOne matches one byte, and returns where the pattern continues.
func globOne(pattern []byte, p int, b byte) (next int, ok bool) {
	switch c := pattern[p]; {
	case c == '?':
		return p + 1, true
	case c == '[':
		return globClass(pattern, p+1, b)
	case c == '\\' && p+1 < len(pattern):
		return p + 2, lower(pattern[p+1]) == lower(b)
	default:
		return p + 1, lower(c) == lower(b)
	}
}

// globClass matches the class after a bracket. A class without a closing bracket ends
// with the pattern.
func globClass(pattern []byte, p int, b byte) (next int, ok bool) {
	b = lower(b)
	not := p < len(pattern) && pattern[p] == '^'
	if not {
		p++
	}
	for ; p < len(pattern) && pattern[p] != ']'; p++ {
		if pattern[p] == '\\' && p+1 < len(pattern) {
			p++
			ok = ok || lower(pattern[p]) == b
			continue
		}
		from, to := lower(pattern[p]), lower(pattern[p])
		if p+2 < len(pattern) && pattern[p+1] == '-' {
			to = lower(pattern[p+2])
			from, to = min(from, to), max(from, to)
			p += 2
		}
		ok = ok || from <= b && b <= to
	}
	return min(p+1, len(pattern)), ok != not
}

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
