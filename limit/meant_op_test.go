package limit_test

import (
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// TestMeantOp: another spelling of an op is found, and another op is none.
func TestMeantOp(t *testing.T) {
	conditions := []limit.OpUse{{Pattern: "POST /exports"}, {Pattern: "POST /v1/pay*"}, {Pattern: "export"}, {Pattern: "/pkg.Service/Do"}, {Pattern: "GET /A/"}, {Pattern: "DELETE *"}, {Pattern: "put /odd"}}
	counted := []limit.OpUse{{Counts: true}, {Pattern: "POST /exports", Counts: true}}
	for _, row := range []struct {
		uses     []limit.OpUse
		op, want string
	}{
		{conditions, "post /exports", "POST /exports"},
		{conditions, "POST /Exports", "POST /exports"},
		{conditions, "POST  /exports", "POST /exports"},
		{conditions, "POST:/exports", "POST /exports"},
		{conditions, "POST exports", "POST /exports"},
		{conditions, "POST /exports/", "POST /exports"},
		{conditions, "POST /exports?x=1", "POST /exports"},
		{conditions, "/exports", "POST /exports"},
		{conditions, "https://api.example.com/exports?x=1", "POST /exports"},
		{conditions, "post https://api.example.com/exports", "POST /exports"},
		{conditions, " POST /exports ", "POST /exports"},
		{conditions, "post /v1/payments/7", "POST /v1/payments/7"},
		{conditions, "/v1/payments?x", "POST /v1/payments"},
		{conditions, "Export", "export"},
		{conditions, "POST /pkg.Service/Do", "/pkg.Service/Do"},
		{conditions, "get /a", "GET /A/"},
		{conditions, "delete /x", "DELETE /x"},

		{conditions, "", ""},
		{conditions, "POST /exports", ""},
		{conditions, "POST /v1/pay?x", ""},
		{conditions, "GET /exports", ""},
		{conditions, "POST /exports/7", ""},
		{conditions, "POST /export", ""},
		{conditions, "GET /x?y=1", ""},
		{conditions, "put /odd", ""},
		{conditions, "get /x", ""},
		{conditions, "exports", ""},
		{conditions, "https://", ""},
		{conditions, "http://host", ""},
		{conditions, "POST", ""},
		{conditions, "/", ""},

		{counted, "get /x", "GET /x"},
		{counted, "GET /x?y=1", "GET /x"},
		{counted, "GET  /x", "GET /x"},
		{counted, "GET /x", ""},
		{counted, "/x", ""},
		{counted, "job", ""},
		{counted[1:], "get /x", ""},
		{counted[1:], "post /exports", "POST /exports"},
	} {
		if got := limit.MeantOp(row.op, row.uses); got != row.want {
			t.Errorf("%q: got %q, want %q", row.op, got, row.want)
		}
	}
}

// FuzzMeantOp: no op makes the search fail, and what it finds is not the op itself.
func FuzzMeantOp(f *testing.F) {
	for _, op := range []string{"get /x", "POST://", "://", "GET", " :/", "PoST /v1/é?"} {
		f.Add(op, "POST /v1/x*")
	}
	f.Fuzz(func(t *testing.T, op, pattern string) {
		if got := limit.MeantOp(op, []limit.OpUse{{Pattern: pattern}, {Counts: true}}); got != "" && got == op {
			t.Errorf("%q means itself with the pattern %q", op, pattern)
		}
	})
}
