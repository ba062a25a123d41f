package limit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// otherWords are words of other limiters, with the words that mean the same here.
var otherWords = map[string][]string{
	"leaky_bucket": {"token_bucket"}, "gcra": {"token_bucket"}, "bucket": {"token_bucket"},
	"sliding": {"sliding_window"}, "fixed": {"fixed_window"}, "calendar": {"fixed_window"}, "semaphore": {"concurrency"}, "concurrent": {"concurrency"},
	"dry_run": {"shadow"}, "dryrun": {"shadow"}, "monitor": {"shadow"}, "report": {"shadow"}, "log": {"shadow"}, "observe": {"shadow"},
	"enabled": {"enforce"}, "on": {"enforce"}, "true": {"enforce"}, "disabled": {"off"}, "false": {"off"},
	"deny": {"closed"}, "block": {"deny", "closed"}, "reject": {"deny", "closed"}, "refuse": {"deny", "closed"}, "ban": {"deny"}, "fail_closed": {"closed"},
	"fail_open": {"open"}, "allow": {"open", "pass"}, "admit": {"allow", "open"}, "skip": {"pass"}, "ignore": {"pass"}, "exempt": {"allow"},
	"redis": {"shared"}, "global": {"shared"}, "memory": {"local"},
}

// meantWord returns "; did you mean X?" for the candidate that means the same as word elsewhere, or
// that is nearest to it, or "" if there is none.
func meantWord(word string, candidates []string) string {
	for _, same := range otherWords[strings.ReplaceAll(strings.ToLower(word), "-", "_")] {
		if slices.Contains(candidates, same) {
			return "; did you mean " + same + "?"
		}
	}
	if s := Nearest(word, candidates); s != "" {
		return "; did you mean " + s + "?"
	}
	return ""
}

// countOthers returns the words for n that are not named.
func countOthers(n int) string {
	if n == 1 {
		return "another"
	}
	return strconv.Itoa(n) + " others"
}

// DidYouMean returns "; did you mean X?" for the candidate that is nearest to word, in small letters or as it is.
// It returns "" if there is none, or if word is that candidate.
func DidYouMean(word string, candidates []string) string {
	near := cmp.Or(Nearest(strings.ToLower(word), candidates), Nearest(word, candidates))
	if near == "" || near == word {
		return ""
	}
	return "; did you mean " + near + "?"
}

// Nearest returns the candidate of which word is most likely a misspelling: at most a
// third of its letters differ, or two of a shorter word with the same first letter. It returns "" if
// there is none.
func Nearest(word string, candidates []string) string {
	if len(word) > MaxNameBytes {
		return ""
	}
	best, least := "", len(word)/3+1
	for _, c := range candidates {
		if n := len(c) - len(word); max(n, -n) > max(least, 2) {
			continue // the distance is no less
		}
		if d := editDistance(word, c); d < least || d == least && best == "" && d > 0 && d <= 2 && strings.HasPrefix(c, word[:min(1, len(word))]) {
			best, least = c, d
		}
	}
	return best
}

// editDistance is the Levenshtein distance in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// nearBuiltIn returns the dimension that an undeclared name probably means, or "". Op and ip are too short
// for Nearest: a third letter behind them counts.
func nearBuiltIn(name string) string {
	for _, short := range [...]string{"op", "ip"} {
		if len(name) == 3 && strings.HasPrefix(name, short) {
			return short
		}
	}
	return Nearest(name, []string{"tenant"})
}
