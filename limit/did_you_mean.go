package limit

// didYouMean returns "; did you mean X?" for the candidate nearest to word, or "" if none
// is near.
func didYouMean(word string, candidates []string) string {
	if s := Nearest(word, candidates); s != "" {
		return "; did you mean " + s + "?"
	}
	return ""
}

// Nearest returns the candidate of which word is most likely a misspelling: at most a
// third of its letters differ. It returns "" if there is none.
func Nearest(word string, candidates []string) string {
	if len(word) > MaxNameBytes {
		return ""
	}
	best, least := "", len(word)/3+1
	for _, c := range candidates {
		if d := editDistance(word, c); d < least || d == least && best == "" && d > 0 && d <= 2 {
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
