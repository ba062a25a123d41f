package dynamo

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awsclient"
	"github.com/limitgate/limitgate/internal/awstest"
)

// TestConflictOfLargeItem: through the client that programs use, a conflict of a large item is one, and its refusal,
// which has the whole item, is within the bound of answers.
func TestConflictOfLargeItem(t *testing.T) {
	a := awstest.Start(t)
	for _, setting := range a.Environment() {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
	c, err := awsclient.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tb := NewTable(c, fmt.Sprint("large", time.Now().UnixNano()))
	if err := tb.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1000, 300_000} {
		it := table.Item{Key: fmt.Sprint("PLAN#p", n), Actor: "me", At: time.Unix(1, 0).UTC(), Body: []byte(`{"x":"` + strings.Repeat("y", n) + `"}`)}
		if _, err := tb.Put(t.Context(), it); err != nil {
			t.Fatal(err)
		}
		other := it
		other.Actor = "you"
		if _, err := tb.Put(t.Context(), other); !errors.Is(err, ErrConflict) {
			t.Errorf("%d bytes: %.200v, want a conflict", n, err)
		}
		if _, err := tb.Put(t.Context(), it); err != nil {
			t.Errorf("%d bytes, written again: %.200v", n, err)
		}
	}
}
