package limitimport

import (
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

// isIn reports whether a block is that of a line, or inside of it.
func (b *modelBlock) isIn(line int) bool {
	for b != nil && b.line != line {
		b = b.outer
	}
	return b != nil
}

func (b *modelBlock) isDry() bool {
	for b != nil && b.dry == "" {
		b = b.outer
	}
	return b != nil && b.dry == "on"
}

// modelRequest is an example: the block that it has in nginx, the limits that are enforced there, and those that
// apply here.
type modelRequest struct {
	uri              string
	addr             netip.Addr
	method           string
	block            *modelBlock
	nginx            []*modelLimit
	enforced, shadow []*modelLimit
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

// requests returns example requests of a configuration, with the limits of the file that apply to them.
func (c *modelConfig) requests(set *limit.Set) []*modelRequest {
	var out []*modelRequest
	for _, server := range c.blocks[0].inner {
		for i, uri := range slices.Repeat(modelPaths(), 5) {
			r := &modelRequest{uri: server.host + uri, block: server.find(uri), addr: otherAddr, method: "GET"}
			switch i / len(modelPaths()) {
			case 1:
				r.addr = exemptAddr
			case 2:
				r.method = "POST"
			case 3:
				r.addr = partlyAddr
			case 4:
				r.addr = insideAddr
			}
			if !r.block.isDry() {
				r.nginx = slices.DeleteFunc(slices.Clone(r.block.limiting()), r.isExemptFrom)
			}
			req := &limit.Request{Tenant: "t", Op: r.method + " /", Cost: 1, Addr: r.addr, Dims: []limit.Dim{{Name: "host", Value: server.host}, {Name: "path", Value: uri}, {Name: "x_key", Value: "k"}}}
			for _, l := range set.Explain(req) {
				if !l.Applies || l.Limit.Action != limit.ActionLimit {
					continue
				}
				m := c.limits[l.Limit.Params.Capacity-2]
				if l.Limit.Mode == limit.ModeShadow {
					r.shadow = append(r.shadow, m)
				} else {
					r.enforced = append(r.enforced, m)
				}
			}
			out = append(out, r)
		}
	}
	return out
}

var (
	besideText  = regexp.MustCompile(`^nginx matches location (\S+) before (\S+), (whose limit by zone (\S+) its requests have here (?:too|in place of that on lines? ([\d, ]*\d))|where limit_req_dry_run admits all)`)
	answersText = regexp.MustCompile(`^nginx answers the requests of location \S+ by return, before it counts them; here those of zone \S+ on line (\d+) count: `)
	unnamedText = regexp.MustCompile(`^its server has the hosts that no other server names; here the limit counts requests of \S+ (?:too|in place of that on lines? ([\d, ]*\d)): `)
	leftOutText = regexp.MustCompile(`^[^,]+(?:, which inherits this limit_req)?, nginx leaves out that of zone (\S+) on line (\d+); here (both count|that one counts)`)
)

// hasLimit reports whether a location has a limit_req, its own or of an outer block.
func (c *modelConfig) hasLimit(path string, l *modelLimit) bool {
	return slices.ContainsFunc(c.blocks, func(b *modelBlock) bool {
		return b.path == path && (slices.Contains(b.limits, l) || slices.Contains(b.limiting(), l))
	})
}

// explained reports whether a remark says that a limit applies here and not in nginx, or the other way round.
func (c *modelConfig) explained(r *modelRequest, l *modelLimit, remarks []Remark) bool {
	return slices.ContainsFunc(remarks, func(m Remark) bool {
		beside, leftOut := besideText.FindStringSubmatch(m.Text), leftOutText.FindStringSubmatch(m.Text)
		extra := slices.Contains(r.enforced, l)
		answers, unnamed := answersText.FindStringSubmatch(m.Text), unnamedText.FindStringSubmatch(m.Text)
		switch {
		case unnamed != nil && r.block.server().unnamed:
			return false
		case unnamed != nil:
			return extra && l.isAt(m.Line) || !extra && slices.ContainsFunc(strings.Split(unnamed[1], ", "), l.isNamed)
		case answers != nil:
			return extra && r.block.isIn(m.Line) && l.isNamed(answers[1])
		case beside != nil && m.Line == r.block.line:
			return !extra && (slices.ContainsFunc(strings.Split(beside[5], ", "), l.isNamed) || beside[4] == "") || extra && beside[4] == l.zone && c.hasLimit(beside[2], l)
		case leftOut != nil && extra:
			return l.isNamed(leftOut[2]) && slices.ContainsFunc(r.block.limiting(), func(o *modelLimit) bool { return o.isAt(m.Line) })
		case strings.Contains(m.Text, "is empty for some requests"), strings.Contains(m.Text, "for which it is empty count too"):
			return extra && l.isAt(m.Line) && r.isExemptFrom(l)
		case strings.Contains(m.Text, "is enforced here"), strings.Contains(m.Text, "enforced for the same requests"):
			return extra
		}
		return !extra && l.isAt(m.Line) && strings.Contains(m.Text, "is not imported")
	})
}

// isTrue reports whether a remark on limits that apply here and not in nginx is true of an example.
func (c *modelConfig) isTrue(m Remark, requests []*modelRequest) bool {
	beside, leftOut := besideText.FindStringSubmatch(m.Text), leftOutText.FindStringSubmatch(m.Text)
	if answers := answersText.FindStringSubmatch(m.Text); answers != nil {
		return slices.ContainsFunc(requests, func(r *modelRequest) bool {
			return r.block.isIn(m.Line) && slices.ContainsFunc(slices.Concat(r.enforced, r.shadow), func(l *modelLimit) bool { return l.isNamed(answers[1]) })
		})
	}
	if unnamedText.MatchString(m.Text) {
		return slices.ContainsFunc(requests, func(r *modelRequest) bool {
			return !r.block.server().unnamed && slices.ContainsFunc(slices.Concat(r.enforced, r.shadow), func(l *modelLimit) bool { return l.isAt(m.Line) })
		})
	}
	if beside == nil && leftOut == nil {
		return true
	}
	return slices.ContainsFunc(requests, func(r *modelRequest) bool {
		here := slices.Concat(r.enforced, r.shadow)
		switch {
		case beside != nil && r.block.line != m.Line:
			return false
		case beside != nil && beside[4] == "": // admitted here alone
			return slices.ContainsFunc(r.nginx, func(l *modelLimit) bool { return !slices.Contains(r.enforced, l) })
		case beside != nil:
			return slices.ContainsFunc(here, func(l *modelLimit) bool {
				return l.zone == beside[4] && c.hasLimit(beside[2], l) && (countOf(here, l) > countOf(r.nginx, l) || !slices.Contains(r.enforced, l))
			})
		}
		return slices.ContainsFunc(r.block.limiting(), func(l *modelLimit) bool { return l.isAt(m.Line) }) &&
			slices.ContainsFunc(here, func(l *modelLimit) bool { return l.isNamed(leftOut[2]) })
	})
}

// countOf returns how often a limit is one of several: where a block repeats it, it may count a request twice here.
func countOf(limits []*modelLimit, l *modelLimit) (n int) {
	for _, o := range limits {
		if o == l {
			n++
		}
	}
	return n
}

// TestNginxModel draws configurations, and compares which limits nginx and the file enforce for example
// requests: where they differ a remark says so, and no remark says so where they do not.
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
		requests := c.requests(limits)
		for _, r := range requests {
			for _, l := range c.limits {
				if slices.Contains(r.nginx, l) != slices.Contains(r.enforced, l) && !c.explained(r, l, result.Remarks) {
					t.Fatalf("no remark on line %d for %s, which nginx limits: %v\n%s", l.line, r.uri, slices.Contains(r.nginx, l), describe())
				}
			}
		}
		for _, m := range result.Remarks {
			if !c.isTrue(m, requests) {
				t.Fatalf("not true: line %d: %s\n%s", m.Line, m.Text, describe())
			}
		}
		c.checkAdvised(t, result, requests)
	})
}

// checkAdvised checks that with all limits that remarks advise no request loses a limit that nginx has for it, but for those
// that a remark names.
func (c *modelConfig) checkAdvised(t *rapid.T, result Result, before []*modelRequest) {
	file := string(result.File)
	for _, r := range result.Remarks {
		if !strings.Contains(r.Text, "which lifts it for requests there") {
			file, _ = withAdvised(file, r)
		}
	}
	set, _, err := config.ParseLimits("limits.yaml", []byte(file), limit.CompileOptions{IPMaxTTL: 3600e6})
	if err != nil {
		t.Fatalf("%v:\n%s%s", err, c.text.String(), file)
	}
	for i, r := range c.requests(set) {
		for _, l := range r.nginx {
			if slices.Contains(before[i].enforced, l) && !slices.Contains(r.enforced, l) {
				t.Fatalf("with the advised limits %s loses that of line %d:\n%s%s", r.uri, l.line, c.text.String(), file)
			}
		}
	}
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
		"/static/a":  "shadow a-static, enforce a-static-allow, enforce k",
		"/two/a":     "shadow b-two, enforce b-two-allow, shadow k-two, enforce k-two-allow",
		"/api/a":     "enforce a-api, enforce k",
		"/api/v2/a":  "enforce b-api-v2, enforce k",
		"/static/im": "shadow a-static, enforce a-static-allow, enforce k",
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
