package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/drill"
)

// TestDrillPrints checks the list and one drill, for people and as JSON.
func TestDrillPrints(t *testing.T) {
	list, errs, code := command("drill")
	for _, d := range drill.All() {
		if code != exitOK || errs != "" || !strings.Contains(list, d.Name+" ") {
			t.Errorf("exit %d, without %s:\n%s%s", code, d.Name, list, errs)
		}
		var printed drill.Drill
		out, _, code := command("drill", d.Name, "--json")
		if err := json.Unmarshal([]byte(out), &printed); err != nil || code != exitOK || len(printed.Steps) != len(d.Steps) {
			t.Errorf("%s: exit %d, %v:\n%s", d.Name, code, err, out)
		}
		if out, _, code := command("drill", d.Name); code != exitOK || !strings.Contains(out, "\nTo end it\n") {
			t.Errorf("%s: exit %d:\n%s", d.Name, code, out)
		}
	}
}

// TestRedisHelp: commands that need a Redis do not offer to do without.
func TestRedisHelp(t *testing.T) {
	for name, want := range map[string]string{
		"drill":  "with --run the store, by the nodes that --redis of that limitgate names\n",
		"doctor": "nodes of the Redis Cluster, or the one Redis, to examine\n",
	} {
		if out, _, _ := command(name, "--help"); !strings.Contains(out, want) || strings.Contains(out, "in memory\n") {
			t.Errorf("%s:\n%s", name, out)
		}
	}
}

// TestDrillCommands checks that the commands of limitgate in the drills exist, with their flags.
func TestDrillCommands(t *testing.T) {
	checked := 0
	for _, d := range drill.All() {
		for _, s := range append(d.Steps, d.End...) {
			for _, text := range s.Commands {
				words, own := strings.CutPrefix(text, "limitgate ")
				if !own {
					continue
				}
				checked++
				// The shell divides the words as it does for people.
				split, err := exec.Command("sh", "-c", "printf '%s\\n' "+words).Output()
				if err != nil {
					t.Fatal(err)
				}
				args := strings.Split(strings.TrimSuffix(string(split), "\n"), "\n")
				if out, errs, code := command(append(args, "--help")...); code != exitOK || !strings.Contains(out, "Usage:") && args[0] != "hash-password" {
					t.Errorf("%s: exit %d: %s%s", text, code, out, errs)
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("%d commands", checked)
	}
}

// TestDrillMistakes checks that each mistake of a user gets an error that says what would be right.
func TestDrillMistakes(t *testing.T) {
	for _, row := range []struct {
		args, want string
		code       int
	}{
		{"failovr", `there is no drill "failovr"; did you mean failover?`, exitUsage},
		{"failover now", `"now" is one argument too many`, exitUsage},
		{"--run", "--run needs the name of a drill: failover or fail-open", exitUsage},
		{"failover --redis 127.0.0.1:1", "--redis has no effect without --run", exitUsage},
		{"lost-cell --run", "lost-cell is practised by hand: leave out --run for its steps", exitUsage},
		{"failover --run", "--run needs the store: --redis HOST:PORT, as the limitgate names it", exitUsage},
		{"failover --run --redis-sentinel master=m,127.0.0.1:1", "--redis-sentinel is not for drills: name the master by --redis", exitUsage},
		{"failover --run --redis 127.0.0.1:1 --outage 2m", "--outage is 2m: want 1s to 1m", exitUsage},
		{"failover --run --redis 127.0.0.1:1 --within 1ms", "--within is 1ms: want 1s to 1m", exitUsage},
		{"failover --run --redis 127.0.0.1:1 --rate 5000", "--rate is 5000: want 1 to 1000", exitUsage},
		{"failover --run --redis 127.0.0.1:1 --timeout 0s", "--timeout must be above zero", exitUsage},
		{"failover --run --redis 127.0.0.1:1", "drill: find masters by 127.0.0.1:1: connection refused: start Redis, or correct the address", exitError},
	} {
		args := append([]string{"drill"}, strings.Fields(row.args)...)
		if out, errs, code := command(args...); code != row.code || out != "" || !strings.Contains(errs, row.want) {
			t.Errorf("%s: exit %d, without %q:\n%s%s", row.args, code, row.want, out, errs)
		}
	}
}

// TestBreakersOf checks the state of the breakers in a line.
func TestBreakersOf(t *testing.T) {
	for body, want := range map[string]string{
		`{"ready":true,"shards":[{"breaker":"open"},{"breaker":"closed"},{"breaker":"closed"}]}`: "breakers 2 closed, 1 open",
		`{"ready":true}`: "breakers unknown",
		"<html>":         "breakers unknown",
	} {
		if got := breakersOf([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestDrillPage checks that the example of docs/drills.md has flags that exist.
func TestDrillPage(t *testing.T) {
	content, err := os.ReadFile("../../docs/drills.md")
	if err != nil {
		t.Fatal(err)
	}
	const example = "limitgate drill fail-open --run --redis 127.0.0.1:6379 --addr 127.0.0.1:6380 --admin 127.0.0.1:9180"
	if !strings.Contains(string(content), "\n"+example+"\n") {
		t.Error("the example is missing")
	}
	if _, errs, code := command(append(strings.Fields(example)[1:], "--help")...); code != exitOK {
		t.Errorf("exit %d: %s", code, errs)
	}
}
