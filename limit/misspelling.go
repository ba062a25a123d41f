package limit

import (
	"strings"
	"unicode/utf8"
)

// minSpelled is the least length of a word that ListedNear and IsSlip take for a misspelling, and twiceSpelled that of one with two
// mistakes: names of one prefix are many tenants.
const (
	minSpelled   = 4
	twiceSpelled = 8
)

// withoutDigits removes the digits of a text.
var withoutDigits = strings.NewReplacer("0", "", "1", "", "2", "", "3", "", "4", "", "5", "", "6", "", "7", "", "8", "", "9", "")

// IsSlip reports whether a word is most likely a misspelling of another one: it becomes that one by one edit, or by two if it is longer, and
// differs in more than digits.
func IsSlip(word, meant string) bool {
	if len(word) < minSpelled || withoutDigits.Replace(word) == withoutDigits.Replace(meant) { // such as shop-1 and shop-2, which are others
		return false
	}
	return isWithin(word, meant, 1) || len(word) >= twiceSpelled && isWithin(word, meant, 2)
}

// isWithin reports whether a becomes b by a number of edits at most: a letter more, less or another one, or two that change places. It takes
// time in proportion to the length, for a few edits, and no memory.
func isWithin(a, b string, edits int) bool {
	n := commonBytes(a, b)
	a, b = a[n:], b[n:]
	switch more := len(a) - len(b); {
	case max(more, -more) > utf8.UTFMax*edits:
		return false
	case a == "" || b == "":
		return utf8.RuneCountInString(a+b) <= edits
	case edits == 0:
		return false
	}
	inA, lenA := utf8.DecodeRuneInString(a)
	inB, lenB := utf8.DecodeRuneInString(b)
	restA, restB := a[lenA:], b[lenB:]
	if isWithin(restA, restB, edits-1) || isWithin(restA, b, edits-1) || isWithin(a, restB, edits-1) {
		return true
	}
	nextA, lenA := utf8.DecodeRuneInString(restA)
	nextB, lenB := utf8.DecodeRuneInString(restB)
	return restA != "" && restB != "" && inA == nextB && inB == nextA && isWithin(restA[lenA:], restB[lenB:], edits-1)
}

// commonBytes returns the number of bytes with which two texts begin alike, without a part of a letter.
func commonBytes(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	inLetter := func(text string) bool { return n < len(text) && !utf8.RuneStart(text[n]) }
	for back := 1; back < utf8.UTFMax && n > 0 && (inLetter(a) || inLetter(b)); back++ {
		n--
	}
	return n
}
