package limitimport

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// find returns the block whose settings a request has, as nginx finds it.
func (b *modelBlock) find(uri string) *modelBlock {
	var best *modelBlock
	for _, l := range b.inner {
		if l.modifier == "=" && l.path == uri {
			return l
		}
		if l.modifier != "=" && l.modifier != "~" && strings.HasPrefix(uri, l.path) && (best == nil || len(l.path) > len(best.path)) {
			best = l
		}
	}
	tried := best == nil || best.modifier != "^~" // regular expressions
	if best != nil {
		if best = best.find(uri); best.modifier == "~" || best.modifier == "=" {
			return best
		}
	}
	if tried {
		for _, l := range b.inner {
			if l.modifier == "~" && strings.HasSuffix(uri, l.path[3:len(l.path)-1]) {
				return l
			}
		}
	}
	if best == nil {
		return b
	}
	return best
}

// server returns the server that a block is or is in.
func (b *modelBlock) server() *modelBlock {
	for b.host == "" {
		b = b.outer
	}
	return b
}

// limiting returns the limit_req that a block has, its own or those of an outer one.
func (b *modelBlock) limiting() []*modelLimit {
	if b.answers { // a location inherits no return
		return nil
	}
	for b.outer != nil && len(b.limits) == 0 {
		b = b.outer
	}
	return b.limits
}

func (b *modelBlock) isDry() bool {
	for b != nil && b.dry == "" {
		b = b.outer
	}
	return b != nil && b.dry == "on"
}

// modelRequest is an example: the block that it has in nginx, and the limits that count there, enforced or in dry run.
type modelRequest struct {
	uri    string
	addr   netip.Addr
	method string
	block  *modelBlock
}

// modelPaths returns paths of example requests for all locations.
func modelPaths() (paths []string) {
	for _, begin := range []string{"/", "/api/", "/api/n/", "/api/n/n/", "/api/v2/", "/api/v2/n/", "/static/", "/static/n/"} {
		paths = append(paths, begin, begin+"x", begin+"q.php", begin+"q.txt")
	}
	return paths
}

// isExemptFrom reports whether the key of a limit_req is empty for a request.
func (r *modelRequest) isExemptFrom(l *modelLimit) bool {
	return l.zone == "g" && (r.addr == exemptAddr || r.addr == partlyAddr) || (l.zone == "p" || l.zone == "c") && r.method == "GET"
}

// inNginx describes the limits that nginx counts a request by.
func (r *modelRequest) inNginx() (limits []string) {
	mode := limit.ModeEnforce
	if r.block.isDry() {
		mode = limit.ModeShadow
	}
	for _, l := range r.block.limiting() {
		if !r.isExemptFrom(l) {
			limits = append(limits, fmt.Sprint(mode, " ", l.number))
		}
	}
	slices.Sort(limits)
	return limits
}

// inFile describes the limits of a file that count a request.
func (r *modelRequest) inFile(set *limit.Set, labels map[int]string) (limits []string) {
	req := &limit.Request{Tenant: "t", Op: r.method + " /", Cost: 1, Addr: r.addr, Dims: []limit.Dim{{Name: "host", Value: r.block.server().host}, {Name: "path", Value: r.uri}, {Name: "x_key", Value: "k"}}}
	if label := labels[r.block.line]; label != "" {
		req.Dims = append(req.Dims, limit.Dim{Name: "location", Value: label})
	}
	for _, l := range set.Explain(req) {
		if l.Applies && l.Limit.Action == limit.ActionLimit {
			limits = append(limits, fmt.Sprint(l.Limit.Mode, " ", l.Limit.Params.Capacity-1))
		}
	}
	slices.Sort(limits)
	return limits
}

// requests returns example requests of a configuration.
func (c *modelConfig) requests() []*modelRequest {
	var out []*modelRequest
	for _, server := range c.blocks[0].inner {
		for _, uri := range modelPaths() {
			for _, addr := range []netip.Addr{otherAddr, exemptAddr, partlyAddr, insideAddr} {
				out = append(out, &modelRequest{uri: uri, block: server.find(uri), addr: addr, method: "GET"})
			}
			out = append(out, &modelRequest{uri: uri, block: server.find(uri), addr: otherAddr, method: "POST"})
		}
	}
	return out
}

var (
	labelText     = regexp.MustCompile(`: services send DIM location "([^"]+)" with the requests that nginx gives it; `)
	notUsedText   = regexp.MustCompile(`^limit_req is not imported: (?:nginx counts no request by it|a return answers all requests of its block|nginx gives its location no request)`)
	asDecidedText = regexp.MustCompile(`^(?:there is no limit_req$|no limit_req has zone=|nginx sends requests on|an IPv6 address counts|nginx answers requests by return or rewrite|locations are conditions on path|servers are conditions on host|services send DIM x_key|all requests that nginx counts by zone|\$posts is the address|\$changes is empty)`)
)

// TestNginxModel draws configurations, and compares which limits nginx and the file count for example requests: they are the same, and
// no remark says otherwise.
func TestNginxModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		result, err := Nginx([]byte(c.text.String()))
		if err != nil {
			t.Fatal(err)
		}
		limits, _, err := config.ParseLimits("limits.yaml", result.File, limit.CompileOptions{IPMaxTTL: 3600e6})
		describe := func() string { return c.text.String() + describe(result, nil) }
		if err != nil {
			t.Fatalf("%v:\n%s", err, describe())
		}
		if _, _, err := config.ParseLimits("limits.yaml", result.Shadow, limit.CompileOptions{IPMaxTTL: 3600e6}); err != nil {
			t.Fatalf("%v:\n%s%s", err, describe(), result.Shadow)
		}
		labels := map[int]string{}
		for _, m := range result.Remarks {
			if label := labelText.FindStringSubmatch(m.Text); label != nil {
				labels[m.Line] = label[1]
			} else if !notUsedText.MatchString(m.Text) && !asDecidedText.MatchString(m.Text) {
				t.Fatalf("a remark says that the file is not as nginx: line %d: %s\n%s", m.Line, m.Text, describe())
			}
		}
		for _, r := range c.requests() {
			if want, got := r.inNginx(), r.inFile(limits, labels); !slices.Equal(got, want) {
				t.Fatalf("%s %s%s from %s counts by %v, in nginx by %v:\n%s", r.method, r.block.server().host, r.uri, r.addr, got, want, describe())
			}
		}
	})
}

// TestNginxDryRun: requests of a location with limit_req_dry_run are admitted, and its limits in shadow mode watch.
func TestNginxDryRun(t *testing.T) {
	content, err := os.ReadFile("testdata/dry_inside.conf")
	if err != nil {
		t.Fatal(err)
	}
	result, err := Nginx(content)
	if err != nil {
		t.Fatal(err)
	}
	set, _, err := config.ParseLimits("limits.yaml", result.File, limit.CompileOptions{IPMaxTTL: 3600e6})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/":          "enforce a, enforce k",
		"/static/a":  "shadow a-static, enforce a-static-allow, enforce k-static-allow",
		"/two/a":     "shadow b-two, enforce a-two-allow, shadow k-two, enforce k-two-allow",
		"/api/a":     "enforce a-api, enforce k-api-allow",
		"/api/v2/a":  "enforce b-api-v2, enforce k-api-allow",
		"/static/im": "shadow a-static, enforce a-static-allow, enforce k-static-allow",
	} {
		req := &limit.Request{Tenant: "t", Cost: 1, Addr: netip.MustParseAddr("192.0.2.1"), Dims: []limit.Dim{{Name: "path", Value: path}, {Name: "x_key", Value: "k"}}}
		var got []string
		for _, l := range set.Explain(req) {
			if l.Applies {
				got = append(got, l.Limit.Mode.String()+" "+l.Limit.ID)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %s, want %s", path, strings.Join(got, ", "), want)
		}
	}
}
