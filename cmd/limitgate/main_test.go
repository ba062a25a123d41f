package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// command runs the program with args.
func command(args ...string) (stdout, stderr string, code int) {
	var out, errs strings.Builder
	env := &environment{stdin: strings.NewReader(""), stdout: &out, stderr: &errs}
	code = execute(context.Background(), env, args)
	return out.String(), errs.String(), code
}

// TestHelp: help with a command prints the same as the command's own --help, which lists
// the exit codes.
func TestHelp(t *testing.T) {
	for _, words := range []string{"serve", "check", "doctor", "limits lint", "limits explain", "limits diff", "limits push", "limits pull", "limits history", "limits watch", "limits rollback", "limits confirm", "audit", "controlplane", "replay", "plan", "drill"} {
		args := strings.Fields(words)
		own, _, code := command(append(args, "--help")...)
		if code != exitOK || !strings.Contains(own, "Usage:") || !strings.Contains(own, "64 when the") && !strings.Contains(own, "64\nwhen the") {
			t.Errorf("%s --help: exit %d:\n%s", words, code, own)
		}
		if got, _, code := command(append([]string{"help"}, args...)...); got != own || code != exitOK {
			t.Errorf("help %s: exit %d, and not what --help prints:\n%s", words, code, got)
		}
		if got, _, code := command(append(args, "help")...); len(args) == 1 && (got != own || code != exitOK) {
			t.Errorf("%s help: exit %d, and not what --help prints:\n%s", words, code, got)
		}
	}
	all, _, _ := command("help")
	for _, args := range [][]string{{"help", "help"}, {"help", "--help"}, {"--help", "serve"}} {
		if got, _, code := command(args...); got != all || code != exitOK {
			t.Errorf("%v: exit %d:\n%s", args, code, got)
		}
	}
}

// TestBadArguments: bad arguments end a command with 64 and an error that begins with the
// command's name.
func TestBadArguments(t *testing.T) {
	const sample = "../../examples/limits.yaml"
	for _, row := range []struct{ args, want string }{
		{"nope", "limitgate: there is no command"},
		{"help nope", "limitgate: there is no command"},
		{"serve --bogus --nope", "limitgate serve: flag --bogus: unknown flag; limitgate serve --help lists them\nlimitgate serve: flag --nope: "},
		{"check", "limitgate check: tenant, op and ip are needed"},
		{"check t", "limitgate check: the op and ip are missing behind the tenant"},
		{"plan", "limitgate plan: --rps is needed"},
		{"plan --rps 1M --picture", "limitgate plan: flag --picture: the value is missing; write --picture "},
		{"doctor", "limitgate doctor: an address is needed"},
		{"limits lint", "limitgate limits lint: the file is missing: "},
		{"limits explain " + sample + " t - - DIM user", "limitgate limits explain: syntax error: DIM needs a name and a value behind it"},
		{"limits explain " + sample + " t - - DIM user u region eu", "limitgate limits explain: invalid option 'region': DIM stands before every name and value"},
		{"limits watch --updates-topic arn:aws:sns:r:1:t --updates-queue https://q dynamodb://t", "limitgate limits watch: --updates-topic is called --updates now\n"},
		{"limits watch dynamodb://t", "limitgate limits watch: --updates is missing: "},
		{"doctor --store-declared-keys", "limitgate doctor: --store-declared-keys is called --redis-declared-keys now\n"},
		{"rollout status --gate nope dynamodb://limits", "limitgate rollout status: "},
		{"controlplane --table a --topic b --leases c --rollout-gate d", "limitgate controlplane: --rollout-gate needs --cells"},
		{"replay --limits " + sample + " --against 127.0.0.1:1 --speed slow -", `limitgate replay: flag --speed: "slow" is not a pace`},
	} {
		if _, errs, code := command(strings.Fields(row.args)...); code != exitUsage || !strings.HasPrefix(errs, row.want) {
			t.Errorf("%s: exit %d: %s", row.args, code, errs)
		}
	}
}

// TestExplainPlaces: lint and explain show no key for a limit that is kept in the proxy, and lint the command of slots.
// Explain shows leases, and with the secret it shows keys with hashed addresses as a
// store has them.
func TestExplainPlaces(t *testing.T) {
	folder := t.TempDir()
	limits, secret := filepath.Join(folder, "limits.yaml"), filepath.Join(folder, "secret")
	const content = `
version: 1
default_plan: p
plans:
  p:
    - {id: near, by: [tenant], rate: 8/h, store: local}
    - {id: ahead, by: [tenant, op], rate: 1000/h, lease: auto}
    - {id: held, by: [tenant], algorithm: concurrency, slots: 2}
shared: [{id: ip, by: [ip], rate: 1000/m}]
`
	for path, text := range map[string]string{limits: content, secret: "sixteen bytes or more of it"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, errs, code := command("limits", "lint", limits); code != exitOK || !strings.Contains(out, "near   plan p  none, kept in the proxy\n") || !strings.Contains(out, "held   plan p  one key per tenant, for RL.ACQUIRE alone\n") {
		t.Errorf("lint: exit %d: %s%s", code, out, errs)
	}
	ask := []string{limits, "t", "o", "203.0.113.7"}
	out, errs, code := command(append([]string{"limits", "explain"}, ask...)...)
	for _, want := range []string{" local   -            applies", "none, kept in the proxy\n", " shared  auto for 2s  applies", "(example hash)\n"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("explain: exit %d, without %q:\n%s%s", code, want, out, errs)
		}
	}
	ask = append([]string{"limits", "explain", "--privacy-ip-secret-file", secret}, ask...)
	out, errs, code = command(ask...)
	again, _, _ := command(ask...)
	if code != exitOK || out != again || strings.Contains(out, "example") || !strings.Contains(out, "lg:s:{ip;t;ip=") {
		t.Errorf("explain with a secret: exit %d:\n%s%s\nagain:\n%s", code, out, errs, again)
	}
}
