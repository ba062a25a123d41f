package limitimport

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

const byAddress = "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;\n"

// repeat returns n copies of a format of their number.
func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}

// nested returns a configuration with locations and exempt networks in each other.
func nested(locations, networks int) string {
	var b strings.Builder
	b.WriteString("geo $g { default 1;\n")
	for i := range networks {
		fmt.Fprintf(&b, "2001:db8::/%d %d;\n", 128-i, i%2)
	}
	b.WriteString("} map $g $k { 0 ''; 1 $binary_remote_addr; }\n")
	for i := range 4 {
		fmt.Fprintf(&b, "limit_req_zone $k zone=z%d:1m rate=1r/s;\n", i)
	}
	b.WriteString("server {\n")
	for i := range locations {
		fmt.Fprintf(&b, "location /%s { limit_req zone=z%d burst=%d; }\n", strings.Repeat("a", i+1), i%4, i)
	}
	return b.String() + "}\n"
}

// TestNginxTooLarge: a short configuration may have more areas than an import looks at.
func TestNginxTooLarge(t *testing.T) {
	for name, text := range map[string]string{
		"paths of a server without a name": byAddress + "server { server_name _; listen 80 default_server; limit_req zone=a;\n" +
			repeat(1000, "location /p%d/ {}") + "}\n" + repeat(1000, "server { server_name h%d.x; limit_req zone=a; }"),
		"paths and networks in each other": nested(240, 100),
	} {
		if _, err := Nginx([]byte(text)); !errors.Is(err, errTooLarge) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestNginxManyExempt: where there are too many limits for exempt addresses these count, and a remark says so.
func TestNginxManyExempt(t *testing.T) {
	r, err := Nginx([]byte("geo $g { default 1;\n" + repeat(150, "10.0.%d.0/24 0;") + "} map $g $k { 0 ''; 1 $binary_remote_addr; }\n" +
		"limit_req_zone $k zone=a:1m rate=1r/s;\nserver {\n" + repeat(1000, "location /l%d/ { limit_req zone=a; }") + "}\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "here requests for which it is empty count too: limits that admit them would be too many, or as specific as others"
	if text := describe(r, nil); strings.Count(text, want) != 1 || strings.Contains(text, "action: allow") || strings.Count(text, "rate: 1/s") != 1000 {
		t.Errorf("%.2000s", text)
	}
}

// TestNginxCountsBy: the advice to count by a variable in place of the address can be followed, and lifts what it says.
func TestNginxCountsBy(t *testing.T) {
	r, err := Nginx([]byte("geo $inside { default 0; 10.0.0.0/8 1; } map $inside$uri $key { default $binary_remote_addr; ~^1 ''; }\n" +
		"limit_req_zone $key zone=a:1m rate=5r/s;\nserver { limit_req zone=a burst=10 nodelay; location /u { return 204; } }\n"))
	if err != nil {
		t.Fatal(err)
	}
	advice := regexp.MustCompile(`write (by: \[key\], missing: pass) in place of (by: \[ip\]) in all limits of group a, and services send DIM key `)
	m := advice.FindStringSubmatch(describe(r, nil))
	if m == nil {
		t.Fatalf("no advice:\n%s", describe(r, nil))
	}
	file := strings.ReplaceAll(string(r.File), m[2], m[1])
	set, warnings, err := config.ParseLimits("limits.yaml", []byte(file), limit.CompileOptions{})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, %v:\n%s", err, warnings, file)
	}
	for dims, want := range map[[2]string]string{{"/x", ""}: "", {"/x", "192.0.2.1"}: "a", {"/u", "192.0.2.1"}: "a-u-allow"} {
		req := &limit.Request{Tenant: "t", Cost: 1, Dims: []limit.Dim{{Name: "path", Value: dims[0]}}}
		if dims[1] != "" {
			req.Dims = append(req.Dims, limit.Dim{Name: "key", Value: dims[1]})
		}
		got := ""
		for _, l := range set.Explain(req) {
			if l.Applies {
				got += l.Limit.ID
			}
		}
		if got != want {
			t.Errorf("%s meets %s, want %s", dims, got, want)
		}
	}
}
