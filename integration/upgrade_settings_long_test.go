//go:build long

package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/redistest"
)

// upgradeValues returns settings that differ from the defaults. Settings of a table of
// limits are missing: they need AWS.
func upgradeValues(t *testing.T) map[string]string {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("0123456789abcdef0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "max_conns": "500", "idle_timeout": "1h", "max_conn_age": "2h",
		"tcp_keepalive": "1m", "cluster_announce": "limits.example:6380", "shutdown_timeout": "7s",
		"limits": writeLimits(t, limitOf("100/h")), "limits_canary": "10%", "limits_canary_threshold": "7%",
		"decision_timeout": "1s", "retry_jitter": "3s", "instances": "3",
		"backstop.ceiling": "2", "backstop.total_rate": "5000", "deny_cache.size": "1000", "deny_cache.max_ttl": "500ms",
		"redis": redistest.SharedNode(t).Addr, "ready_needs_store": "true", "breaker.cooldown": "2s", "store_io_timeout": "2s",
		"store_separate_checks": "true", "store_declared_keys": "true", "memory_buckets": "2000",
		"privacy.ip_secret_file": secret, "privacy.ip_max_ttl": "2h", "privacy.ipv6_prefix": "56",
		"log_level": "debug", "pprof": "true",
	}
}

// TestLongUpgradeSettings checks that this release starts with the flags, the environment
// and the settings file of the earlier one. A setting with a new name must be logged as a
// warning.
func TestLongUpgradeSettings(t *testing.T) {
	earlier, values := earlierBinary(t), upgradeValues(t)
	var known []string
	for _, o := range printed(t, exec.Command(earlier, "serve")) {
		if _, given := values[o.Name]; given {
			known = append(known, o.Name)
		}
	}
	maps.DeleteFunc(values, func(name, _ string) bool { return !slices.Contains(known, name) })
	if len(known) < 10 {
		t.Fatalf("the earlier release has the settings %v only", known)
	}
	file, env := settingsFileOf(t, values), os.Environ()
	flags := []string{"serve"}
	for name, value := range values {
		flags = append(flags, "--"+strings.NewReplacer(".", "-", "_", "-").Replace(name)+"="+value)
		env = append(env, "LIMITGATE_"+strings.ToUpper(strings.ReplaceAll(name, ".", "_"))+"="+value)
	}
	for source, command := range map[string]func(binary string) *exec.Cmd{
		"flags": func(binary string) *exec.Cmd { return exec.Command(binary, flags...) },
		"file":  func(binary string) *exec.Cmd { return exec.Command(binary, "serve", "--config", file) },
		"environment": func(binary string) *exec.Cmd {
			cmd := exec.Command(binary, "serve")
			cmd.Env = env
			return cmd
		},
	} {
		t.Run(source, func(t *testing.T) { startsAlike(t, command, earlier, known) })
	}
}

// startsAlike checks that this release understands a command line, with its environment,
// as the earlier one does, and starts.
func startsAlike(t *testing.T, command func(binary string) *exec.Cmd, earlier string, known []string) {
	p, found := launch(t, command(binaries.release), listening)
	p.addr = found[1]
	if v, err := check(p.client(), "settings", "-", "-"); err != nil || v.source != "store" || v.limit != 100 {
		t.Errorf("a check: %+v, %v", v, err)
	}
	now, bySource := map[string]config.Origin{}, map[string]config.Origin{}
	for _, o := range printed(t, command(binaries.release)) {
		now[o.Name], bySource[o.Source] = o, o
	}
	for _, was := range printed(t, command(earlier)) {
		is, has := now[was.Name]
		switch {
		case !slices.Contains(known, was.Name):
		case was.Source == "default":
			t.Errorf("the earlier release does not read %s", was.Name)
		case !has && bySource[was.Source].Value != was.Value && !warned(p.output(), was):
			t.Errorf("%s has another name, and no warning:\n%s", was.Name, p.output())
		case has && is != was:
			t.Errorf("%+v is now %+v", was, is)
		}
	}
}

// warned reports whether a log has a warning about a setting under the name that its source
// has.
func warned(log string, o config.Origin) bool {
	name := o.Name
	if kind, written, _ := strings.Cut(o.Source, " "); kind != "file" {
		name = written
	}
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=WARN") && strings.Contains(line, name) {
			return true
		}
	}
	return false
}

// printed returns the settings that a command line of serve selects.
func printed(t *testing.T, cmd *exec.Cmd) (all []config.Origin) {
	t.Helper()
	cmd.Args = append(cmd.Args, "--print-config", "--json")
	out, errs, code := runCommand(t, nil, cmd)
	if err := json.Unmarshal([]byte(out), &all); code != 0 || err != nil {
		t.Fatalf("%v: exit %d, %v\n%s", cmd, code, err, errs)
	}
	return all
}

// settingsFileOf writes a settings file.
func settingsFileOf(t *testing.T, values map[string]string) string {
	t.Helper()
	var text strings.Builder
	last := ""
	for _, name := range slices.Sorted(maps.Keys(values)) {
		group, key, nested := strings.Cut(name, ".")
		switch {
		case !nested:
			fmt.Fprintf(&text, "%s: %s\n", name, values[name])
			continue
		case group != last:
			fmt.Fprintf(&text, "%s:\n", group)
			last = group
		}
		fmt.Fprintf(&text, "  %s: %s\n", key, values[name])
	}
	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
