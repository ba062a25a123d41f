package limitimport

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// modelPlugin is a plugin of the model. Its limits are known by their counts.
type modelPlugin struct {
	consumer, route, service string // "" for any
	rank, line               int
	counts                   []int64
}

// modelPairs are the kinds of entities that a plugin may have, in the order of their precedence.
var modelPairs = []struct {
	consumer, route, service bool
}{{}, {service: true}, {route: true}, {consumer: true}, {route: true, service: true}, {consumer: true, service: true}, {consumer: true, route: true}, {true, true, true}}

// modelNames are the entities of the model, the routes in the services of the same index.
type modelNames struct{ services, routes, consumers []string }

var (
	anyNames = modelNames{[]string{"orders", "s"}, []string{"r1", "search"}, []string{"vip", "mobile"}}
	// distinctNames have lengths of which no two sums are equal, so that no limits tie.
	distinctNames = modelNames{[]string{"s", "oo"}, []string{strings.Repeat("r", 4), strings.Repeat("q", 8)}, []string{strings.Repeat("c", 16), strings.Repeat("d", 32)}}
)

// drawPlugins draws plugins of a configuration of Kong, each of other entities, and writes it.
func drawPlugins(t *rapid.T, names modelNames, ways []string) (text string, plugins []modelPlugin) {
	inside, count, seen := map[string][]string{}, int64(0), map[string]bool{} // the plugins of an entity, by its name
	for range rapid.IntRange(1, 6).Draw(t, "plugins") {
		p := modelPlugin{rank: rapid.IntRange(0, len(modelPairs)-1).Draw(t, "rank")}
		of, fields, entity := modelPairs[p.rank], "", ""
		i, nested := rapid.IntRange(0, 1).Draw(t, "service"), rapid.Bool().Draw(t, "nested")
		name := func(is bool, kind string, all []string, i int) string {
			switch {
			case !is:
				return ""
			case nested && p.rank > 0 && p.rank < 4:
				entity = all[i]
			default:
				fields += fmt.Sprintf(", %s: %s", kind, all[i])
			}
			return all[i]
		}
		p.consumer = name(of.consumer, "consumer", names.consumers, rapid.IntRange(0, 1).Draw(t, "consumer"))
		p.route, p.service = name(of.route, "route", names.routes, i), name(of.service, "service", names.services, i)
		at := p.consumer + "/" + p.route + "/" + p.service
		if seen[at] {
			continue
		}
		seen[at] = true
		windows := ""
		for _, w := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"second", "minute", "hour"}), 1, 3, rapid.ID).Draw(t, "windows") {
			count++
			p.counts = append(p.counts, count)
			windows += fmt.Sprintf("%s: %d, ", w, count)
		}
		by := rapid.SampledFrom(ways).Draw(t, "by")
		inside[entity] = append(inside[entity], fmt.Sprintf("{name: rate-limiting%s, config: {%spolicy: redis, limit_by: %s}}", fields, windows, by))
		plugins = append(plugins, p)
	}
	list := func(name string) string { return "[" + strings.Join(inside[name], ",\n    ") + "]" }
	services, routes := "", ""
	for i, service := range names.services {
		within, route := "", "name: "+names.routes[i]+", plugins: "+list(names.routes[i])
		if rapid.Bool().Draw(t, "route within service") {
			within = ", routes: [{" + route + "}]"
		} else {
			routes += "  - {" + route + ", service: {name: " + service + "}}\n"
		}
		services += fmt.Sprintf("  - {name: %s, plugins: %s%s}\n", service, list(service), within)
	}
	text = "_format_version: '3.0'\nservices:\n" + services + "routes:\n" + routes
	text += "consumers:\n"
	for _, consumer := range names.consumers {
		text += fmt.Sprintf("  - {username: %s, plugins: %s}\n", consumer, list(consumer))
	}
	text += "plugins: " + list("") + "\n"
	for i := range plugins {
		begin, _, _ := strings.Cut(text, fmt.Sprintf(": %d, ", plugins[i].counts[0]))
		plugins[i].line = 1 + strings.Count(begin, "\n")
	}
	return text, plugins
}

// TestKongModel: the limits that apply to a request are those of the plugin that Kong runs for it. Others apply only
// where a remark has their line, and there is none for plugins that count all requests, or whose limits do not apply. If
// those have one entity each, lint does not doubt that an allow is meant.
func TestKongModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names, ways := anyNames, []string{"consumer", "consumer", "consumer", "ip", "header, header_name: key", "credential"}
		if rapid.Bool().Draw(t, "distinct") {
			names = distinctNames
		}
		all := rapid.Bool().Draw(t, "all requests")
		if all {
			ways = []string{"consumer", "ip"}
		}
		text, plugins := drawPlugins(t, names, ways)
		result, err := Kong([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		set, notes, err := config.ParseLimits("limits.yaml", result.File, limit.CompileOptions{})
		if err != nil {
			t.Fatalf("%v, of\n%s\nfrom\n%s", err, result.File, text)
		}
		if all && slices.ContainsFunc(result.Remarks, func(r Remark) bool { return strings.HasPrefix(r.Text, "Kong runs this plugin") }) {
			t.Fatalf("%v of\n%s", result.Remarks, text)
		}
		doubted := func(p limit.Problem) bool {
			return strings.Contains(p.Text, "lifts the limits of its level alone") || strings.Contains(p.Text, "of another group")
		}
		pairs := slices.ContainsFunc(plugins, func(p modelPlugin) bool { return p.rank > 3 })
		if all && !pairs && slices.ContainsFunc(notes, doubted) {
			t.Fatalf("%v of\n%s\nfrom\n%s", notes, result.File, text)
		}
		applied := map[[2]int]bool{} // the lines of the plugin that Kong runs and of another one that counts for a request
		for _, consumer := range append([]string{"other"}, names.consumers...) {
			for i, service := range append(names.services[:2:2], "t") {
				for j, route := range append(names.routes[:2:2], "") {
					runs := runningPlugin(plugins, consumer, route, service)
					req := &limit.Request{Tenant: consumer, Cost: 1, Addr: netip.MustParseAddr("192.0.2.1"), Dims: []limit.Dim{{Name: "service", Value: service}, {Name: "key", Value: "k"}, {Name: "credential", Value: "c"}}}
					if route != "" {
						req.Dims = append(req.Dims, limit.Dim{Name: "route", Value: route})
					}
					got := counted(set, req)
					without := *req // a limit by credential then replaces none
					without.Dims = slices.DeleteFunc(slices.Clone(req.Dims), func(d limit.Dim) bool { return d.Name == "credential" })
					for _, n := range slices.Concat(got, counted(set, &without)) {
						if runs != nil {
							applied[[2]int{runs.line, pluginOf(plugins, n).line}] = true
						}
					}
					if i == j || route == "" { // no route of another service, which a remark may mean all the same
						checkPlugin(t, req, got, runs, plugins, result)
					}
				}
			}
		}
		checkAdvised(t, names, plugins, result)
		for _, r := range result.Remarks {
			for _, line := range linesOfBoth(r) {
				if !applied[[2]int{r.Line, line}] {
					t.Fatalf("line %d does not count beside line %d: %v, in\n%s\nfrom\n%s", line, r.Line, r.Text, result.File, text)
				}
			}
		}
	})
}

// checkAdvised checks that with all limits that remarks advise the plugins that Kong runs count alone, but for those with
// a remark that advises none.
func checkAdvised(t *rapid.T, names modelNames, plugins []modelPlugin, result Result) {
	left := Result{File: result.File}
	for _, r := range result.Remarks {
		file, n := withAdvised(string(left.File), r)
		if left.File = []byte(file); n == 0 {
			left.Remarks = append(left.Remarks, r)
		}
	}
	set, _, err := config.ParseLimits("limits.yaml", left.File, limit.CompileOptions{})
	if err != nil {
		t.Fatalf("%v, of\n%s", err, left.File)
	}
	for _, consumer := range append([]string{"other"}, names.consumers...) {
		for i, service := range names.services {
			req := &limit.Request{Tenant: consumer, Cost: 1, Addr: netip.MustParseAddr("192.0.2.1"), Dims: []limit.Dim{{Name: "service", Value: service}, {Name: "key", Value: "k"}, {Name: "credential", Value: "c"}, {Name: "route", Value: names.routes[i]}}}
			checkPlugin(t, req, counted(set, req), runningPlugin(plugins, consumer, names.routes[i], service), plugins, left)
		}
	}
}

// runningPlugin returns the plugin that Kong runs for a request, or nil.
func runningPlugin(plugins []modelPlugin, consumer, route, service string) (runs *modelPlugin) {
	for i := range plugins {
		p := &plugins[i]
		meets := (p.consumer == "" || p.consumer == consumer) && (p.route == "" || p.route == route) && (p.service == "" || p.service == service)
		if meets && (runs == nil || p.rank > runs.rank) {
			runs = p
		}
	}
	return runs
}

// linesOfBoth returns the lines of the plugins that count too, by a remark.
func linesOfBoth(r Remark) (lines []int) {
	_, named, found := strings.Cut(r.Text, "Kong runs this plugin in place of ")
	if !found {
		return nil
	}
	for _, word := range strings.FieldsFunc(named, func(c rune) bool { return c == ' ' || c == ',' || c == ';' }) {
		if line, err := strconv.Atoi(word); err == nil {
			lines = append(lines, line)
		}
	}
	return lines
}

// counted returns the counts of the limits that apply to a request.
func counted(set *limit.Set, req *limit.Request) (counts []int64) {
	for _, l := range set.Explain(req) {
		if l.Applies && l.Limit.Action == limit.ActionLimit {
			counts = append(counts, l.Limit.Params.Count)
		}
	}
	return counts
}

// pluginOf returns the plugin that has a count.
func pluginOf(plugins []modelPlugin, count int64) *modelPlugin {
	return &plugins[slices.IndexFunc(plugins, func(p modelPlugin) bool { return slices.Contains(p.counts, count) })]
}

// checkPlugin checks the limits that apply to a request.
func checkPlugin(t *rapid.T, req *limit.Request, got []int64, runs *modelPlugin, plugins []modelPlugin, result Result) {
	want := []int64{}
	if runs != nil {
		want = append(want, runs.counts...)
	}
	for _, n := range got {
		p := pluginOf(plugins, n)
		said := func(r Remark) bool { return r.Line == runs.line && slices.Contains(linesOfBoth(r), p.line) }
		if !slices.Contains(want, n) && (runs == nil || !slices.ContainsFunc(result.Remarks, said)) {
			t.Fatalf("%v: a limit of line %d applies, and %v runs, in\n%s%v", req, p.line, runs, result.File, result.Remarks)
		}
	}
	for _, n := range want {
		if !slices.Contains(got, n) {
			t.Fatalf("%v: the limits of line %d do not apply, in\n%s%v", req, runs.line, result.File, result.Remarks)
		}
	}
}
