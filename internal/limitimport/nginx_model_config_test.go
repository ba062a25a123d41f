package limitimport

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// modelBlock is a block of a configuration of nginx, as the test reads it: by itself, without the importer.
type modelBlock struct {
	outer          *modelBlock
	modifier, path string // of a location
	host           string // of requests of a server
	unnamed        bool   // the server
	line           int
	dry            string // on, off or ""
	answers        bool   // by a return
	dryLine        int
	limits         []*modelLimit
	inner          []*modelBlock
}

// modelLimit is a limit_req. Its burst is its number in the configuration, by which the file's limit is known.
type modelLimit struct {
	zone   string
	number int64
}

// modelConfig writes blocks.
type modelConfig struct {
	text   strings.Builder
	line   int
	limits []*modelLimit
	blocks []*modelBlock
}

func (c *modelConfig) write(format string, args ...any) int {
	c.line++
	fmt.Fprintf(&c.text, format+"\n", args...)
	return c.line
}

var modelZones = map[string]string{"a": "$binary_remote_addr", "b": "$binary_remote_addr", "k": "$http_x_key", "g": "$limit_key", "p": "$posts", "c": "$changes"}

// exemptAddr and partlyAddr are addresses for which the key of zone g is empty; insideAddr is in the network of the latter, and
// has one.
var exemptAddr, partlyAddr, insideAddr, otherAddr = netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("172.16.0.1"), netip.MustParseAddr("172.16.5.1"), netip.MustParseAddr("192.0.2.1")

// drawBlock draws a block, with its limits, and writes it. Inner draws and writes the blocks in it.
func (c *modelConfig) drawBlock(t *rapid.T, b *modelBlock, begin string, inner func()) {
	b.line = c.write("%s {", begin)
	c.blocks = append(c.blocks, b)
	if b.outer != nil {
		b.outer.inner = append(b.outer.inner, b)
	}
	if b.dry = rapid.SampledFrom([]string{"", "", "", "on", "off"}).Draw(t, "dry"); b.dry != "" {
		b.dryLine = c.write("limit_req_dry_run %s;", b.dry)
	}
	if b.answers = b.path != "" && rapid.IntRange(0, 7).Draw(t, "return") == 0; b.answers {
		c.write("return 204;")
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(t, "limits") {
		if outer := b.outer; outer != nil && rapid.IntRange(0, 3).Draw(t, "repeats") == 0 {
			if limits := outer.limiting(); len(limits) > 0 {
				l := rapid.SampledFrom(limits).Draw(t, "repeated")
				if b.has(l.zone) {
					continue
				}
				c.write("limit_req zone=%s burst=%d nodelay;", l.zone, l.number)
				b.limits = append(b.limits, l)
				continue
			}
		}
		l := &modelLimit{zone: rapid.SampledFrom([]string{"a", "a", "b", "k", "g", "p", "c"}).Draw(t, "zone"), number: int64(len(c.limits) + 1)}
		if b.has(l.zone) {
			continue
		}
		c.write("limit_req zone=%s burst=%d nodelay;", l.zone, l.number)
		b.limits, c.limits = append(b.limits, l), append(c.limits, l)
	}
	inner()
	c.write("}")
}

// drawLocations draws locations of a server, or of a location.
func (c *modelConfig) drawLocations(t *rapid.T, outer *modelBlock) {
	locations := []string{" /", " /api/", "^~ /api/", " /api/v2/", " /api/n/", "= /api/", " /static/", "~ [.]php$"}
	if outer.path != "" {
		locations = []string{" " + outer.path + "n/", "^~ " + outer.path + "n/", "= " + outer.path + "n/", "~ [.]txt$"}
	}
	for _, l := range rapid.SliceOfNDistinct(rapid.SampledFrom(locations), 0, 4, func(l string) string { return strings.Replace(l, "^~ ", " ", 1) }).Draw(t, "locations") {
		modifier, path, _ := strings.Cut(l, " ")
		b := &modelBlock{outer: outer, modifier: modifier, path: path}
		c.drawBlock(t, b, strings.Join(strings.Fields("location "+modifier+" "+path), " "), func() {
			if modifier == "" && outer.path == "" && path != "/" {
				c.drawLocations(t, b)
			}
		})
	}
}

// drawConfig draws a configuration with one or two servers.
func drawConfig(t *rapid.T) *modelConfig {
	c := &modelConfig{}
	c.write("geo $limited { default 1; 10.0.0.0/8 0; 172.16.0.0/12 0; 172.16.5.0/24 1; } map $limited $limit_key { 0 ''; 1 $binary_remote_addr; }")
	c.write("map $request_method $posts { POST $binary_remote_addr; } map $request_method $changes { default $binary_remote_addr; GET ''; }")
	for _, z := range slices.Sorted(maps.Keys(modelZones)) {
		c.write("limit_req_zone %s zone=%s:1m rate=9r/s;", modelZones[z], z)
	}
	http := &modelBlock{}
	c.drawBlock(t, http, "http", func() {
		for _, host := range []string{"a.x", "b.x"}[:rapid.IntRange(1, 2).Draw(t, "servers")] {
			s := &modelBlock{outer: http, host: host, unnamed: host == "b.x" && rapid.Bool().Draw(t, "unnamed")}
			c.drawBlock(t, s, "server", func() {
				if s.unnamed {
					c.write("server_name _; listen 80 default_server;")
				} else {
					c.write("server_name %s;", host)
				}
				c.drawLocations(t, s)
			})
		}
	})
	return c
}

// has reports whether a block has a limit_req of a zone: nginx refuses a second one.
func (b *modelBlock) has(zone string) bool {
	return slices.ContainsFunc(b.limits, func(l *modelLimit) bool { return l.zone == zone })
}
