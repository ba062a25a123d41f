//go:build clients

package clients

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// snippetLimits have one unit that comes back after two seconds, one that comes back after
// hours, and an operation that is never admitted.
const snippetLimits = `
version: 1
default_plan: free
plans:
  free:
    - {id: slow, by: [tenant, op], when: {op: later}, rate: 30/m, burst: 1, on_error: open}
    - {id: hourly, by: [tenant, op], when: {op: "GET /hourly"}, rate: 1/4h, on_error: open}
    - {id: free, by: [tenant, op], rate: 1000/m, on_error: open}
shared:
  - {id: never, action: deny, when: {op: never}}
`

// snippet is a language of docs/clients.md, and the program in testdata that calls
// its code.
type snippet struct {
	language string // of the code blocks
	variant  string // of the same code; empty for the only one
	refuse   string // the file of the code that answers 429
	wait     string // the file of the code that waits
	connect  string // the file of the code that connects with TLS
	main     string
	command  []string
	missing  string
}

func snippets() []snippet {
	python, node := pythonRows()[1], absent("node-redis and ioredis are needed", "node", "-e", "require('redis'); require('ioredis')")
	return []snippet{
		{language: "go", refuse: "limited/limited.go", wait: "jobs/jobs.go", connect: "connect/connect.go", main: "main.go", command: []string{"sh", "-c", `go build -o readme . && exec ./readme "$@"`, "readme"}},
		{language: "python", refuse: "limited.py", wait: "snippet.py", connect: "connection.py", main: "main.py", command: []string{python.command[0], "main.py"}, missing: python.missing},
		{language: "js", variant: "node-redis", refuse: "limited.mjs", wait: "snippet.mjs", connect: "connection.mjs", main: "main.mjs", command: []string{"node", "main.mjs", "node-redis"}, missing: node},
		{language: "js", variant: "ioredis", refuse: "limited.mjs", wait: "snippet.mjs", connect: "connection.mjs", main: "main.mjs", command: []string{"node", "main.mjs", "ioredis"}, missing: node},
		{language: "ruby", refuse: "limited.rb", wait: "snippet.rb", connect: "connection.rb", main: "main.rb", command: []string{"ruby", "main.rb"}, missing: absent("the package ruby-redis is needed", "ruby", "-e", "require 'redis'")},
		{language: "php", refuse: "limited.php", wait: "snippet.php", connect: "connection.php", main: "main.php", command: []string{"php", "main.php"}, missing: phpRows()[0].missing},
	}
}

// TestSnippets runs the code of docs/clients.md unchanged. The code that waits is denied once,
// waits long enough, and is admitted; it gives up at once on a request that can never succeed and
// on one that would wait for hours. The code that answers 429 does so with Retry-After, and
// admits another request without; a mistake in the call is an error. With -clients-secure it connects by the code of the section
// "With TLS and users".
func TestSnippets(t *testing.T) {
	refusals, waits, connections := codeBlocks(t, "Answer 429"), codeBlocks(t, "Wait instead"), codeBlocks(t, "With TLS and users")
	a, certificates := plainAccess(), map[string]string{}
	if *secure {
		p := newProduction(t)
		a, certificates = p.byPassword(row{}), map[string]string{"ca.pem": p.clients.CA, "cert.pem": p.driver.cert, "key.pem": p.driver.key}
	}
	nodeRows(t) // sets the path of Node.js packages
	for _, s := range snippets() {
		if s.missing != "" {
			fmt.Printf("docs/clients.md, %s %s: not run: %s\n", s.language, s.variant, s.missing)
			continue
		}
		t.Run(s.language+s.variant, func(t *testing.T) {
			refuse, wait, connect := refusals[s.language], waits[s.language], connections[s.language]
			if refuse == "" || wait == "" || connect == "" {
				t.Fatalf("docs/clients.md lacks a code block of %s", s.language)
			}
			files := map[string][]byte{s.refuse: []byte(refuse), s.wait: []byte(wait), s.connect: []byte(connect)}
			for name, path := range certificates {
				files[name] = readFile(t, path)
			}
			s.run(t, a, s.unpack(t, files))
			fmt.Printf("docs/clients.md, %s %s: answered 429; waited, was admitted\n", s.language, s.variant)
		})
	}
}

// run runs the program in a folder against a proxy.
func (s snippet) run(t *testing.T, a access, dir string) {
	ctx, cancel := context.WithTimeout(t.Context(), driverTimeout)
	defer cancel()
	p := a.serve(t, snippetLimits)
	defer p.close(t)
	host, port, _ := net.SplitHostPort(p.Addr)
	cmd := program(ctx, a, append(slices.Clone(s.command), host, port))
	cmd.Dir = dir
	last, err := converse(cmd, "take", func() string { return take(ctx, t, p, a.user) })
	said := strings.Fields(last)
	if err != nil || len(said) != 7 || !slices.Equal(slices.Delete(slices.Clone(said), 4, 5), []string{"true", "false", "false", "429", "200", "500"}) {
		t.Fatalf("it says %q, not true for later, false for never, false, 429 and the seconds for hourly, 200 for free, and 500 for an op that is too long: %v", last, err)
	}
	if wait, err := strconv.Atoi(said[4]); err != nil || wait < 3*3600 || wait > 5*3600 {
		t.Errorf("Retry-After is %s, not some four hours in seconds", said[4])
	}
	if denied := p.denied(t); denied != [3]string{"1", "1", "2"} {
		t.Errorf("later, never and hourly were denied %q times, not once, once, and once by each function", denied)
	}
}

// unpack writes the files of a snippet and its caller into a folder.
func (s snippet) unpack(tb testing.TB, files map[string][]byte) string {
	tb.Helper()
	dir := tb.TempDir()
	files[s.main] = readFile(tb, "testdata/snippets/"+s.main)
	if s.language == "go" {
		module := string(readFile(tb, "go/go.mod"))
		_, requirements, _ := strings.Cut(module, "\n")
		files["go.mod"], files["go.sum"] = []byte("module readme\n"+requirements), readFile(tb, "go/go.sum")
	}
	if s.language == "js" { // whose imports NODE_PATH does not change
		modules, err := filepath.Abs(nodeModules)
		if err == nil {
			err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// take takes the units of two limits, so that the snippet is denied. It fails if the snippet's connections
// have another user.
func take(ctx context.Context, tb testing.TB, p *proxy, user string) string {
	open, err := p.others(ctx)
	if err != nil {
		tb.Errorf("list the connections: %v", err)
	}
	for _, one := range open {
		if one.user != user {
			tb.Errorf("the server saw the user %s", one.user)
		}
	}
	for _, op := range []string{"later", "GET /hourly"} {
		reply, err := p.eye.Do(ctx, "RL.CHECK", "snippet", op, "-").Slice()
		if err != nil || reply[0] != int64(1) {
			tb.Errorf("take the unit of %s: %v, %v", op, reply, err)
		}
	}
	return "taken"
}

// denied returns the denials of the limits, by the proxy's metrics.
func (p *proxy) denied(tb testing.TB) (times [3]string) {
	tb.Helper()
	resp, err := p.web.Get(p.scheme + "://" + p.Admin + "/metrics")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	for i, limit := range []string{"slow", "never", "hourly"} {
		for line := range strings.Lines(string(body)) {
			if strings.HasPrefix(line, `limitgate_decisions_total{limit="`+limit+`"`) && strings.Contains(line, `verdict="deny"`) {
				times[i] = strings.Fields(line)[1]
			}
		}
	}
	return times
}

// codeBlocks returns the code of a section of docs/clients.md, by language.
func codeBlocks(tb testing.TB, title string) map[string]string {
	tb.Helper()
	_, section, _ := strings.Cut(string(readFile(tb, "../docs/clients.md")), "\n## "+title+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := map[string]string{}
	language := ""
	for line := range strings.Lines(section) {
		word, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence:
			language = word
		case language != "":
			blocks[language] += line
		}
	}
	return blocks
}

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return content
}
