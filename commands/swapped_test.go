package commands

import (
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// TestSwapped: a tenant that is a route is a mistake if the op is no route.
func TestSwapped(t *testing.T) {
	for _, row := range []struct {
		tenant, op string
		want       bool
	}{
		{"POST /v1/payments", "acme", true},
		{"get /v1", "-", true},
		{"/v1/payments", "acme", true},
		{"/v1", "", true},
		{"acme", "POST /v1/payments", false},
		{"/teams/7", "GET /", false},
		{"acme", "job", false},
		{"Get Rich", "x", false},
		{"acme /x", "y", false},
		{"", "", false},
	} {
		if got := Swapped(&limit.Request{Tenant: row.tenant, Op: row.op}); got != row.want {
			t.Errorf("%q %q: %v", row.tenant, row.op, got)
		}
	}
}
