package replay

import (
	"strings"
	"testing"
)

// TestWriteNotes checks that the notes below the table appear only where its columns do
// not add up.
func TestWriteNotes(t *testing.T) {
	const (
		rest   = "were denied by another limit"
		hidden = "?: a proxy does not report"
	)
	for _, row := range []struct {
		limit        LimitReport
		rest, hidden bool
	}{
		{LimitReport{Requests: 3, Admitted: 1, Denied: 2, WouldDeny: new(int64)}, false, false},
		{LimitReport{Requests: 3, Admitted: 1, WouldDeny: new(int64)}, true, false},
		{LimitReport{Requests: 3, Admitted: 3}, false, true},
	} {
		var b strings.Builder
		(&Report{Limits: []LimitReport{row.limit}}).Write(&b)
		if got := b.String(); strings.Contains(got, rest) != row.rest || strings.Contains(got, hidden) != row.hidden {
			t.Errorf("%+v:\n%s", row.limit, got)
		}
	}
}
