package bypass

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
)

// MaxRevokedBytes bounds the list of revoked tokens: 10,000 ids and more.
const MaxRevokedBytes = 1 << 20

// ParseRevoked parses a list of ids, one a line. Empty lines and what follows a # are ignored. The
// error names the first line that is no id: one that is overlooked would leave a token in force.
func ParseRevoked(content []byte) (map[string]struct{}, error) {
	ids := map[string]struct{}{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for n := 1; lines.Scan(); n++ {
		id, _, _ := strings.Cut(lines.Text(), "#")
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		if !isID(id) {
			return nil, fmt.Errorf("line %d is not the id of a token", n)
		}
		ids[id] = struct{}{}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read revoked tokens: %w", err)
	}
	return ids, nil
}
