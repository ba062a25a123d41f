package integration

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// example is a command of a document and the first words of the lines that it prints.
type example struct {
	command string
	shows   []string
}

// examples returns the commands in the console blocks of a document. A line of three dots
// stands for omitted lines.
func examples(tb testing.TB, path string) []example {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var out []example
	console := false
	for line := range strings.Lines(string(content)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			console = line == "```console"
		case console && strings.HasPrefix(line, "$ "):
			out = append(out, example{command: line[2:]})
		case console && line != "...":
			last := &out[len(out)-1]
			last.shows = append(last.shows, strings.TrimSuffix(line, "..."))
		}
	}
	return out
}

// standIn replaces curl on a machine without it. It supports the uses of curl in the
// README.
const standIn = `#!/usr/bin/env bash
set -euo pipefail
[ $# = 2 ] && [ "$1" = -s ]
url=${2#http://}
exec 3<>"/dev/tcp/${url%%:*}/$(sed -E 's|^[^:]*:([0-9]+).*|\1|' <<<"$url")"
printf 'GET /%s HTTP/1.0\r\n\r\n' "${url#*/}" >&3
sed '1,/^\r*$/d' <&3
`

// ensureCurl writes the replacement into a folder if there is no curl.
func ensureCurl(tb testing.TB, folder string) {
	tb.Helper()
	if _, err := exec.LookPath("curl"); err == nil {
		return
	}
	if err := os.WriteFile(filepath.Join(folder, "curl"), []byte(standIn), 0o700); err != nil {
		tb.Fatal(err)
	}
}

// documents are the documents whose commands are run, with the smallest number of
// commands in each.
var documents = map[string]int{"README.md": 9, "docs/commands.md": 6, "docs/operations.md": 8, "docs/users.md": 1, "docs/edge.md": 3, "docs/envoy-examples.md": 3, "docs/moving/redis-cell.md": 1, "docs/moving/throttlecrab.md": 1, "docs/moving/nginx.md": 1, "docs/moving/kong.md": 1}

// TestReadme runs every command in the documents' console blocks in a shell, with a fresh
// proxy and a cluster, and compares their output. It compares only the first word of each
// line, because times and versions change, but for the commands of other limiters.
func TestReadme(t *testing.T) {
	p := serve(t, "../examples/limits.yaml", "--retry-jitter", "0", "--decision-timeout", "5s")
	bin := t.TempDir()
	if err := os.Symlink(binaries.release, filepath.Join(bin, "limitgate")); err != nil {
		t.Fatal(err)
	}
	ensureCurl(t, bin)
	host, port, _ := strings.Cut(p.addr, ":")
	store := redistest.SharedCluster(t)
	local := strings.NewReplacer(
		"10.0.0.1:6379,10.0.0.2:6379", strings.Join(store.Addrs()[:2], ","),
		"bin/limitgate check", "limitgate check --addr "+p.addr,
		"bin/limitgate", "limitgate",
		"redis-cli -p 6380", "redis-cli --no-raw -h "+host+" -p "+port,
		"127.0.0.1:6380", p.addr, "127.0.0.1:9180", p.admin,
	)
	var all []example
	// In this order, since CL.THROTTLE and THROTTLE have one bucket for one key.
	for _, document := range slices.Sorted(maps.Keys(documents)) {
		found := examples(t, "../"+document)
		if len(found) < documents[document] {
			t.Errorf("%s has %d commands", document, len(found))
		}
		all = append(all, found...)
	}
	for _, e := range all {
		cmd := exec.Command("bash", "-c", local.Replace(e.command))
		cmd.Dir = ".."
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("LIMITGATE_REDIS_BIN")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		said := strings.Contains(e.command, "limits import") || strings.Contains(e.command, "--check") // remarks, a difference
		if err != nil && !(said && cmd.ProcessState.ExitCode() == 2) {
			t.Errorf("$ %s\n%v\n%s", e.command, err, out)
			continue
		}
		lines := strings.Split(string(out), "\n")
		for i, want := range e.shows {
			same := i < len(lines) && firstWord(lines[i]) == firstWord(want)
			if strings.Contains(e.command, "THROTTLE") { // a full bucket answers the same each time
				same = i < len(lines) && lines[i] == want
			}
			if !same {
				t.Errorf("$ %s\nline %d is not as shown, %q:\n%s", e.command, i+1, want, out)
				break
			}
		}
	}
}

func firstWord(line string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	word, _, _ = strings.Cut(word, ",")
	return word
}

// TestReadmeRedis runs the README's commands for production, on a cluster.
func TestReadmeRedis(t *testing.T) {
	content, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	const line = "bin/limitgate serve --limits examples/limits.yaml --redis 10.0.0.1:6379,10.0.0.2:6379"
	if !strings.Contains(string(content), line) {
		t.Fatalf("the README does not say %q any more", line)
	}
	c := redistest.SharedCluster(t)
	p := serve(t, "../examples/limits.yaml", "--redis", strings.Join(c.Addrs()[:2], ","), "--decision-timeout", "5s")
	if v, err := check(p.client(), "readme", "-", "-"); err != nil || v.source != "store" {
		t.Errorf("%+v, %v", v, err)
	}
	if ready := p.get("/readyz"); !strings.Contains(ready, `"store":"cluster"`) {
		t.Errorf("/readyz: %s", ready)
	}
}
