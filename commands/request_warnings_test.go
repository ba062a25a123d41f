package commands_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
)

// TestRequestWarnings: mistakes in valid requests have a sentence each, and requests in order have none.
func TestRequestWarnings(t *testing.T) {
	const head = "version: 1\nplans:\n  p:\n"
	const tenants = "default_plan: p\ntenants: {acme: {}, Globex: {}, GLobex: {}}\n"
	files := map[string]string{
		"regions": head + "    - {id: eu, by: [tenant], when: {region: eu}, rate: 1/s}\n    - {id: writes, by: [tenant, user|key], when: {op: \"POST *\"}, rate: 1/m}\n    - {id: ip, by: [tenant, ip], rate: 9/s}\n" + tenants,
		"shadow":  head + "    - {id: eu, by: [tenant], when: {region: eu}, rate: 1/s}\n    - {id: watched, by: [tenant], group: g, rate: 1/m, mode: shadow}\n    - {id: off, by: [tenant, user], rate: 9/s, mode: \"off\"}\n" + tenants,
		"allowed": head + "    - {id: eu, by: [tenant], when: {region: eu}, rate: 1/s}\n    - {id: free, by: [tenant], group: g, action: allow}\n" + tenants,
		"strict":  head + "    - {id: user, by: [tenant, user], missing: deny, rate: 1/s}\n" + tenants,
		"values":  head + "    - {id: user, by: [tenant, user], rate: 1/s}\n" + tenants + "dimensions: {user: {values: [ann]}}\n",
		"default": head + "    - {id: op, by: [tenant, op], rate: 1/s}\n    - {id: b, by: [tenant], when: {ip: 10.0.0.0/8}, rate: 1/s}\n" + tenants,
	}
	files["hosts"] = head + "    - {id: api, by: [tenant], when: {host: api.example.com}, rate: 1/s}\n    - {id: www, by: [tenant], when: {host: \"www.*\"}, rate: 1/s}\n" + tenants
	files["kinds"] = head + "    - {id: order, by: [tenant], when: {kind: order}, rate: 1/s}\n    - {id: shop, by: [tenant], when: {http_host: shop}, rate: 1/s}\n    - {id: all, by: [tenant], rate: 9/s}\n" + tenants
	files["slots"] = head + "    - {id: k, by: [tenant], algorithm: concurrency, slots: 2}\n    - {id: off, by: [tenant], group: g, when: {ip: 10.0.0.0/8}, action: allow}\n" + tenants
	files["paths"] = head + "    - {id: login, by: [tenant, host, ip], when: {path: /login}, rate: 1/s}\n    - {id: host, by: [tenant, host, ip], rate: 9/s}\n    - {id: key, by: [tenant, key, zone], group: g, rate: 9/s}\n" + tenants
	files["chains"] = head + "    - {id: t, by: [tenant, app, user], rate: 1/s}\n    - {id: c, by: [tenant, \"api_key|team\"], group: g, when: {team: a}, rate: 1/s}\n" + tenants +
		"dimensions: {user: {values: [u1, u2]}, app: {}, team: {}, api_key: {}}\n"
	lacks := func(dim, id string) string {
		return "no limit applies: the request has no " + dim + ", which limit " + id + " needs"
	}
	for _, row := range []struct {
		file, words string
		want        []string
	}{
		{"regions", "acme GET 192.0.2.1", nil},
		{"regions", "acmee GET 192.0.2.1", []string{`tenant "acmee" is not listed; did you mean "acme"?`}},
		{"regions", "acme7 GET 192.0.2.1", nil},
		{"regions", "acme GET -", []string{lacks("DIM region", "eu"), lacks("ip", "ip")}},
		{"regions", "acme POST_x - 1 DIM region us", []string{lacks("DIM user or key", "writes"), lacks("ip", "ip")}},
		{"regions", "acme - 192.0.2.1 1 DIM region EU", []string{`limits take the region "EU" for another one than "eu": small letters and capitals differ`}},
		{"regions", "acme - 192.0.2.1 1 DIM region us", nil},
		{"hosts", "acme - - 1 DIM host API.example.com:443", []string{`limits take the host "API.example.com:443" for another one than "api.example.com": it has a port`}},
		{"hosts", "acme - - 1 DIM host api.example.com.", []string{`limits take the host "api.example.com." for another one than "api.example.com": it ends with a dot`}},
		{"hosts", "acme - - 1 DIM host WWW.example.com", []string{`limits take the host "WWW.example.com" for another one than "www.*": small letters and capitals differ`}},
		{"hosts", "acme - - 1 DIM host www.example.com:443", nil},
		{"hosts", "acme - - 1 DIM host other.example.com:443", nil},
		{"kinds", "acme - - 1 DIM kind order:express", nil},
		{"kinds", "acme - - 1 DIM kind order:42", nil},
		{"kinds", "acme - - 1 DIM kind order:", nil},
		{"kinds", "acme - - 1 DIM kind [order]:x", nil},
		{"kinds", "acme - - 1 DIM http_host shop:8080", []string{`limits take the http_host "shop:8080" for another one than "shop": it has a port`}},
		{"kinds", "acme - - 1 DIM http_host shop:99999", nil},
		{"regions", "acme - - 1 DIM region eu", nil},
		{"regions", "ACME - - 1 DIM region eu", []string{`tenant "ACME" is not listed; did you mean "acme", which has limits of its own?`}},
		{"regions", "globex - - 1 DIM region eu", []string{`tenant "globex" is not listed; did you mean "GLobex", which has limits of its own?`}},
		{"regions", "Globex - - 1 DIM region eu DIM usr u1", []string{`no limit of tenant "Globex" uses the dimension "usr"; did you mean user?`}},
		{"regions", "initech - - 1 DIM region eu", nil},
		{"regions", "initech - - 1 DIM region eu DIM traceparent 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", nil},
		{"shadow", "acme - -", nil},
		{"allowed", "acme - -", nil},
		{"strict", "acme - -", nil},
		{"values", "acme - - 1 DIM user bob", nil},
		{"values", "acme - -", []string{lacks("DIM user", "user")}},
		{"slots", "acme - -", []string{"no limit applies: limit k counts slots, which only RL.ACQUIRE takes"}},
		{"paths", "acme - 192.0.2.1", []string{lacks("DIM host", "host"), lacks("DIM key and no DIM zone", "key")}},
		{"paths", "acme - -", []string{lacks("DIM host and no ip", "host"), lacks("DIM key and no DIM zone", "key")}},
		{"chains", "acme - - 1 DIM user u9", []string{lacks("DIM app", "t"), lacks("DIM team", "c")}},
		{"default", "acme - 192.0.2.1", []string{lacks("op", "op")}},
		{"default", "acme 192.0.2.1 -", []string{commands.AddressAsOpText}},
	} {
		set, _, err := config.ParseLimits("limits.yaml", []byte(files[row.file]), limit.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		req, err := commands.ParseRequest(strings.Fields(row.words))
		if err != nil {
			t.Fatal(err)
		}
		req.Op = strings.ReplaceAll(req.Op, "_", " ")
		if got := commands.RequestWarnings(&req, set, users.Unrestricted.MayUse); !slices.Equal(got, row.want) {
			t.Errorf("%s, %s:\n%q, want\n%q", row.file, row.words, got, row.want)
		}
	}
	set, _, _ := config.ParseLimits("limits.yaml", []byte(files["regions"]), limit.CompileOptions{})
	req := limit.Request{Tenant: " acme ", Cost: 1, Dims: []limit.Dim{{Name: "region", Value: "eu"}}}
	if got := commands.RequestWarnings(&req, set, users.Unrestricted.MayUse); len(got) != 1 || !strings.HasPrefix(got[0], `tenant " acme " is not listed`) {
		t.Errorf("blanks: %q", got)
	}
	if got := commands.RequestWarnings(&req, set, func(tenant string) bool { return tenant != "acme" }); len(got) != 0 {
		t.Errorf("for a user who may not use the listed tenant: %q", got)
	}
	req = limit.Request{Tenant: "acme", Cost: 1, Op: "POST /x"}
	if got, want := commands.RequestWarnings(&req, set, users.Unrestricted.MayUse), []string{lacks("DIM region", "eu"), lacks("DIM user or key", "writes"), lacks("ip", "ip")}; !slices.Equal(got, want) {
		t.Errorf("a chain: %q", got)
	}
}
