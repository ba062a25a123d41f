package integration

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestDoctor: the report is aligned text without colours, or JSON with the same content,
// and leaves no key behind.
func TestDoctor(t *testing.T) {
	c := redistest.SharedCluster(t)
	c.FlushAll(t)
	args := []string{"doctor", "--timeout", "60s", "--decision-timeout", "1s", "--redis", strings.Join(c.Addrs()[:2], ", ")}
	out, errs, code := run(t, nil, args...)
	const patient = "limitgate doctor: --decision-timeout 1s: while a master is down a check may take as long\n"
	if code != 0 || errs != patient || strings.Contains(out, "\x1b") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	for _, pattern := range []string{
		`^store  cluster of 3 masters, \w+ \d+\.\d+\.\d+\nmode   shard-wide: one script call`,
		`\n\nMASTER           SLOTS        REPLICAS  ROUND TRIP`,
		`\n127.0.0.1:\d+  5461-10921   1         \S+s / \S+s / \S+s`,
		`\nok    evalsha      SCRIPT LOAD and EVALSHA work\n`,
		`\nnote  tls          connections to the store are not encrypted`,
		`\nlimitgate can use this store \(fail 0, warn \d, note \d\)\n$`,
	} {
		if !regexp.MustCompile(pattern).MatchString(out) {
			t.Errorf("no %s in\n%s", pattern, out)
		}
	}
	for line := range strings.Lines(out) {
		if utf8.RuneCountInString(line) > 101 {
			t.Errorf("a line is too long: %s", line)
		}
	}
	out, errs, code = run(t, nil, append(args, "--json")...)
	var report struct {
		Verdict, Kind, Mode string
		Masters             []struct {
			Addr, Slots string
			RoundTrip   struct {
				Median time.Duration `json:"median_ns"`
			} `json:"round_trip"`
		}
		Findings []struct{ Severity, Check, Text string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, errs)
	}
	if report.Verdict != "warn" || report.Kind != "cluster" || report.Mode != "shard-wide" || len(report.Masters) != 3 ||
		report.Masters[2].Slots != "10922-16383" || report.Masters[2].RoundTrip.Median <= 0 || len(report.Findings) < 10 {
		t.Errorf("got %+v", report)
	}
	out, errs, code = run(t, nil, append(args, "--redis-declared-keys")...)
	if code != 0 || !strings.Contains(out, "\nmode   per-slot: ") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	for _, n := range c.Masters(t) {
		if keys := n.CLI(t, "KEYS", "*"); keys != "" {
			t.Errorf("left behind on %s: %s", n.Addr, keys)
		}
	}
}

// TestDoctorExits: doctor exits with 1 if a check fails, and with the usage code for
// wrong arguments, each with an error message, and always within its timeout.
func TestDoctorExits(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	hung := redistest.Start(t)
	hung.Stop()
	for _, row := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"--redis", master.Addr}, 0, "limitgate can use this store"},
		{[]string{"--redis", replica.Addr}, 1, master.Addr},
		{[]string{"--redis", "127.0.0.1:1"}, 1, "connection refused"},
		{[]string{"--redis", hung.Addr, "--timeout", "500ms"}, 1, "limitgate cannot use this store"},
		{[]string{"--redis", "127.0.0.1:1", "--json"}, 1, `"verdict": "fail"`},
		{nil, 64, "an address is needed"},
		{[]string{"--redis", ""}, 64, "an address is needed"},
		{[]string{"--redis", "redis://:secret@10.0.0.1"}, 64, "an address must not contain a user or a password"},
		{[]string{"--redis", "10.0.0.1"}, 64, "has no port"},
		{[]string{master.Addr}, 64, "is not a flag"},
		{[]string{"--redis", master.Addr, "--timeout", "0s"}, 64, "above zero"},
		{[]string{"--nonsense"}, 64, "limitgate doctor --help"},
		{[]string{"--help"}, 0, "limitgate doctor --redis 10.0.0.1:6379,10.0.0.2:6379"},
	} {
		began := time.Now()
		out, errs, code := run(t, nil, append([]string{"doctor"}, row.args...)...)
		if said := strings.Join(strings.Fields(out+errs), " "); code != row.code || !strings.Contains(said, row.say) || strings.Contains(said, "secret@") {
			t.Errorf("doctor %v: exit %d, want %d with %q:\n%s%s", row.args, code, row.code, row.say, out, errs)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("doctor %v took %s", row.args, took)
		}
	}
}

// TestRedisIsLimitgate: the address of a proxy instead of its store's results in one clear error of each
// command that takes --redis.
func TestRedisIsLimitgate(t *testing.T) {
	p := serve(t, "", exact...)
	want := p.addr + " is a limitgate, not a Redis: name the nodes that its own --redis names\n"
	for args, begin := range map[string]string{
		"doctor --redis ": "limitgate: doctor: ",
		"drill fail-open --run --addr " + p.addr + " --redis ": "limitgate: drill: ",
		"serve --listen 127.0.0.1:0 --admin= --redis ":         "limitgate: open store: ",
	} {
		_, errs, code := run(t, nil, strings.Fields(args+p.addr)...)
		if code != 1 || !strings.HasSuffix("\n"+errs, "\n"+begin+want) {
			t.Errorf("%s: exit %d: %s", args, code, errs)
		}
	}
}
