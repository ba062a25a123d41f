package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/catalog"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/syncbuffer"
	"github.com/limitgate/limitgate/limit"
)

// limitsOfRate is a limits file with one limit.
func limitsOfRate(rate string) string {
	return "version: 1\ndefault_plan: free\nplans:\n  free:\n    - {id: tenant, by: [tenant], rate: " + rate + "}\n"
}

// TestReload: the answer and the line of a reload report limits that are not in use, and why.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(limitsOfRate("10/s"))
	var out syncbuffer.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	source, err := openFile(&config.Settings{Limits: path, LimitsCanary: 2000, CanaryThreshold: 100}, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := source.Set().Version
	for _, row := range []struct {
		name, content string
		abort         bool
		err, line     string // parts of the error and of the line
	}{
		{"changed", limitsOfRate("20/s"), false, "", "tenant 10/s burst 10 -> 20/s burst 20"},
		{"aborted", limitsOfRate("20/s"), true, "was taken back, and waits for another file: it denies; change the file, or restore that of version " + first + ", which is in use", ""},
		{"restored", limitsOfRate("10/s"), false, "", `changes="none, and the limits have no error any more"`},
		{"cut off", "version: 1\ndefault_plan: free\nplans:\n  free: []\n", false, "", `fewer="1 of 1 enforced limits" advice="see whether the file is whole"`},
		{"whole again", limitsOfRate("10/s"), false, "", `level=INFO msg="limits reloaded"`},
		{"bad", limitsOfRate("0/s"), false, "rate of zero", ""},
		{"good again", limitsOfRate("10/s"), false, "", `changes="none, and the limits have no error any more"`},
	} {
		if row.abort {
			if err := source.TakeBack("", "it denies"); err != nil {
				t.Fatal(err)
			}
		}
		write(row.content)
		logged := len(out.String())
		err := reload(source, byClient, log)
		if err == nil != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %v", row.name, err)
		}
		if line := out.String()[logged:]; (line == "") != (row.line == "") || !strings.Contains(line, row.line) {
			t.Errorf("%s: logged %q", row.name, line)
		}
	}
}

// TestReloadWarns: a reload logs the warnings about a file that the file before had not, on whatever line, a number of them at most.
func TestReloadWarns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	var out syncbuffer.Buffer
	var source *fileSource
	load := func(comment, shared string) (logged string) {
		t.Helper()
		text := strings.Replace(limitsOfRate("10/s"), "rate: 10/s", "rate: 10/s, on_error: open", 1)
		if err := os.WriteFile(path, []byte(comment+text+"shared:\n"+shared), 0o600); err != nil {
			t.Fatal(err)
		}
		before := len(out.String())
		var err error
		if source == nil {
			source, err = openFile(&config.Settings{Limits: path}, slog.New(slog.NewTextHandler(&out, nil)), nil)
		} else {
			err = reload(source, byClient, source.log)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out.String()[before:]
	}
	const warning, twice = `msg="warning about the limits file" line=`, "  - {id: a, when: {op: \"GET|POST /x\"}, action: deny}\n"
	for _, row := range []struct {
		name, comment, shared string
		warnings              int
	}{
		{"at the start", "", twice, 1},
		{"the same on another line", "# moved\n", twice + "  - {id: b, when: {op: GET /z}, action: deny}\n", 0},
		{"a new one", "", twice + "  - {id: all, action: deny}\n", 1},
		{"none any more", "", "  - {id: b, when: {op: GET /z}, action: deny}\n", 0},
		{"the first again", "", twice, 1},
	} {
		if logged := load(row.comment, row.shared); strings.Count(logged, warning) != row.warnings {
			t.Errorf("%s: logged %q", row.name, logged)
		}
	}
	many := ""
	for i := range mostWarnings + 5 {
		many += fmt.Sprintf("  - {id: l%d, when: {op: \"GET|POST /%d\"}, action: deny}\n", i, i)
	}
	if logged := load("", many); strings.Count(logged, warning) != mostWarnings || !strings.Contains(logged, "left_out=5 ") {
		t.Errorf("many: logged %q", logged)
	}
}

// TestLostParts: a file that is cut off has fewer limits, plans or tenants, and a rename, a limit more and a tenant or
// limit of many that leaves are no loss.
func TestLostParts(t *testing.T) {
	parse := func(text string) *limit.Set {
		t.Helper()
		set, _, err := config.ParseLimits("f", []byte(text), limit.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	const head = "version: 1\ndefault_plan: p\nplans:\n  p:\n    - {id: a, by: [tenant], rate: 1/s}\n"
	const shadow = "    - {id: s, by: [tenant, op], rate: 1/s, mode: shadow}\n"
	const pro = "  pro: [{id: b, by: [tenant], rate: 2/s}]\n"
	tenants := "tenants:\n"
	for i := range 20 {
		tenants += fmt.Sprintf("  t%d: {}\n", i)
	}
	limits := func(n int) string {
		text := "version: 1\ndefault_plan: p\nplans:\n  p:\n"
		for i := range n {
			text += fmt.Sprintf("    - {id: l%d, by: [tenant], when: {op: /%d}, rate: 10/s}\n", i, i)
		}
		return text
	}
	for name, row := range map[string]struct{ before, after, want string }{
		"the same":       {head + pro + tenants, head + pro + tenants, ""},
		"more":           {head, head + pro, ""},
		"a rename":       {head + pro, head + strings.Replace(pro, "id: b", "id: c", 1), ""},
		"a tenant":       {head + tenants, head + tenants[:len(tenants)-len("  t19: {}\n")], ""},
		"tenants cut":    {head + pro + tenants, head + pro + tenants[:len("tenants:\n  t1: {}\n")], "19 of 20 tenants"},
		"a limit":        {limits(15), limits(14), ""},
		"two limits":     {limits(14), limits(12), "2 of 14 enforced limits"},
		"a limit of few": {limits(9), limits(8), "1 of 9 enforced limits"},
		"a shadow limit": {head + shadow, head, ""},
		"one enforced":   {head + shadow + pro, "version: 1\ndefault_plan: p\nplans:\n  p: []\n" + pro, "1 of 2 enforced limits"},
		"all behind cut": {head + pro + tenants, head, "1 of 2 enforced limits, 1 of 2 plans, 20 of 20 tenants"},
	} {
		if got := lostParts(parse(row.before), parse(row.after)); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

// scanned is a table of items in memory.
type scanned struct{ items *[]table.Item }

func (s scanned) Scan(context.Context) ([]table.Item, error) { return *s.items, nil }

// TestReloadOfTable: the answer to a reload names the items of a table that cannot be used.
func TestReloadOfTable(t *testing.T) {
	items := gateItems()
	src := gated(t, `{"revision":0}`, items...)
	src.follower = catalog.NewSyncer(src.Catalog, scanned{&items}, nil, "", nil)
	if err := reload(src, byClient, src.log); err != nil {
		t.Errorf("a good table: %v", err)
	}
	bad := gateItem("TENANT#acme", `{"plan": "none"}`)
	bad.Version = 2
	items = append(slices.DeleteFunc(slices.Clone(items), func(it table.Item) bool { return it.Key == bad.Key }), bad)
	const want = "items of the table cannot be used, and the last good version of each stays in use, if it has one: TENANT#acme, version 2: "
	if err := reload(src, byClient, src.log); err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "; push them corrected") {
		t.Errorf("a bad item: %v", err)
	}
}

// silent is a table that cannot be read.
type silent struct{}

func (silent) Scan(context.Context) ([]table.Item, error) { return nil, errors.New("no answer") }

// TestStatusOfTable: an item that cannot be used does not hide that the table cannot be read.
func TestStatusOfTable(t *testing.T) {
	src := gated(t, `{"revision":0}`, gateItems()...)
	src.follower = catalog.NewSyncer(src.Catalog, silent{}, nil, "", nil)
	bad := gateItem("TENANT#acme", `{"plan": "none"}`)
	bad.Version = 2
	src.Apply([]table.Item{bad})
	if got := src.Status().Error; !strings.HasPrefix(got, "TENANT#acme, version 2: ") {
		t.Errorf("a bad item: %q", got)
	}
	if err := src.follower.Refresh(t.Context()); err == nil {
		t.Fatal("the table was read")
	}
	if got := src.Status().Error; !strings.HasPrefix(got, "no answer; TENANT#acme, version 2: ") {
		t.Errorf("a bad item of a table that cannot be read: %q", got)
	}
}

// TestTableChanges: changes of a table are logged, those of a pause in one line, and none twice.
func TestTableChanges(t *testing.T) {
	var out syncbuffer.Buffer
	items := gateItems()
	src := gated(t, `{"revision":0}`, items...)
	src.changes.log, src.changes.pause = slog.New(slog.NewTextHandler(&out, nil)), time.Hour
	src.OnChange(func(*limit.Set) {})
	src.follower = catalog.NewSyncer(src.Catalog, scanned{&items}, nil, "", nil)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- src.changes.run(ctx) }()
	items = append(items, gateItem("TENANT#beta", `{"plan": "free"}`))
	if err := reload(src, byClient, src.changes.log); err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		if strings.Contains(out.String(), "beta") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	src.Apply([]table.Item{gateItem("TENANT#gamma", `{"plan": "free"}`)}) // during the pause
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `msg="limits reloaded" by="change of the table"`) || !strings.Contains(got, `source=dynamodb://limits changes="tenant beta is new"`) {
		t.Errorf("logged %s", got)
	}
}
