package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Gate names the revision of the shared limits and plans that is tried, and the
// percentage of tenants. The zero Gate names none.
type Gate struct {
	Revision int64   `json:"revision"`
	Percent  float64 `json:"percent"` // of the tenants, 0 to 100
	// Threshold is by how many points of all requests, 0 to 100, the revision may deny
	// more than the limits that it is to replace, before it is vetoed.
	Threshold float64 `json:"threshold"`
}

// ReadGate parses a gate. It requires a revision, 0 for none, so that an unrelated
// document is not accepted as a gate without a revision.
func ReadGate(body []byte) (g Gate, err error) {
	named := struct{ Revision *int64 }{}
	if err = json.Unmarshal(body, &named); err == nil {
		err = json.Unmarshal(body, &g)
	}
	if err != nil {
		return Gate{}, fmt.Errorf("read gate: %w", err)
	}
	if named.Revision == nil {
		return Gate{}, errors.New(`read gate: no revision: a gate is {"revision":0,"percent":0,"threshold":0}, or has the numbers of a revision to try`)
	}
	between := func(n float64) bool { return n >= 0 && n <= 100 }
	if g.Revision < 0 || !between(g.Percent) || !between(g.Threshold) {
		return Gate{}, fmt.Errorf("read gate: %+v is invalid: a revision is a whole number, percent and threshold are from 0 to 100", g)
	}
	return g, nil
}

// Share returns the share of tenants in hundredths of a percent.
func (g *Gate) Share() int { return int(math.Round(g.Percent * 100)) }

// RevisionKey returns the key of a revision's item.
func RevisionKey(n int64) string { return PrefixRevision + strconv.FormatInt(n, 10) }

// RevisionNumber returns the number of the revision with a key.
func RevisionNumber(key string) (n int64, ok bool) {
	n, err := strconv.ParseInt(Name(key), 10, 64)
	return n, IsRevision(key) && err == nil && n > 0 && n < MaxVersion && key == RevisionKey(n)
}

// ReadRevision parses the body of a revision: the shared part and plans of a limits
// file, which replace all others.
func ReadRevision(body json.RawMessage) (parts map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(body, &parts); err != nil {
		return nil, fmt.Errorf("read revision: %w", err)
	}
	if parts == nil { // the JSON null
		return nil, errors.New("read revision: no parts")
	}
	for key := range parts {
		if !IsPart(key) || IsTenant(key) {
			return nil, fmt.Errorf("read revision: %s is neither a plan nor %s", key, KeyShared)
		}
	}
	return parts, nil
}
