package httpapi

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/httpfields"
	"github.com/limitgate/limitgate/limit"
)

// TestOp: a path becomes an op by decoding it once.
func TestOp(t *testing.T) {
	for _, row := range []struct{ method, uri, want string }{
		{"GET", "/v1/items/7?x=1", "GET /v1/items/7"},
		{"get", "/", "GET /"},
		{"POST", "https://api.example.com/v1/pay?x=/y", "POST /v1/pay"},
		{"POST", "https://api.example.com", "POST /"},
		{"GET", "/a//b/./../c", "GET /a//b/./../c"},
		{"GET", "/a%20b%2Fc", "GET /a b/c"},
		{"GET", "/100%", "GET /100%"},
		{"GET", "/%zz%2", "GET /%zz%2"},
		{"GET", "/%2541", "GET /%41"},
		{"GET", "/caf%C3%A9", "GET /café"},
		{"GET", "/%FF", "GET /%FF"},
		{"GET", "/a%00b", "GET /a%00b"},
		{"GET", "/a%0d%0ab", "GET /a%0D%0Ab"},
		{"GET", "/a\x00b\xff", "GET /a%00b%FF"},
		{"POST", "/%70ay/%ff", "POST /pay/%FF"},
		{"POST", "/%70ay%c2%80", "POST /pay%C2%80"},
		{"POST", "http:/pay", "POST /pay"},
		{"POST", "foo:/pay", "POST /pay"},
		{"POST", "foo:pay", "POST pay"},
		{"OPTIONS", "*", "OPTIONS *"},
		{"GET", "/x#y", "GET /x"},
		{"GET", "/x://y/z", "GET /x://y/z"},
		{"GET", "/" + strings.Repeat("a", 2000), "GET /" + strings.Repeat("a", 1019)},
		{"GET", "/" + strings.Repeat("%C3%A9", 2000), "GET /" + strings.Repeat("é", 509)},
	} {
		if got := string(appendOp(nil, []byte(row.method), pathOf([]byte(row.uri)))); got != row.want {
			t.Errorf("%s %.40q: %.60q, want %.60q", row.method, row.uri, got, row.want)
		}
	}
}

// FuzzOp: every method and path that HTTP allows gives an op that can be decided.
func FuzzOp(f *testing.F) {
	f.Add("GET", "/v1/%41?x")
	f.Add("POST", "http://h/%FF\x80")
	f.Fuzz(func(t *testing.T, method, uri string) {
		if strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_") != "" || method == "" || len(method) > 64 {
			return
		}
		if op := appendOp(nil, []byte(method), pathOf([]byte(uri))); limit.CheckOp(string(op)) != nil {
			t.Errorf("%q %q: %q: %v", method, uri, op, limit.CheckOp(string(op)))
		}
	})
}

// TestNames: the settings have the names that this package and the serializer know.
func TestNames(t *testing.T) {
	if a, b := strings.Join(GatewayNames(), " "), strings.Join(config.HTTPGateways, " "); a != b {
		t.Errorf("gateways %s, in the settings %s", a, b)
	}
	if a, b := strings.Join(httpfields.FormatNames(), " "), strings.Join(config.HTTPHeaders, " "); a != b {
		t.Errorf("formats %s, in the settings %s", a, b)
	}
	for _, name := range GatewayNames() {
		if g, ok := ParseGateway(name); !ok || g.String() != name {
			t.Errorf("%s: %v %t", name, g, ok)
		}
	}
	if _, ok := ParseGateway("nginxx"); ok {
		t.Error("nginxx is a gateway")
	}
}
