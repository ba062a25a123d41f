package config

import (
	"cmp"
	"errors"
	"flag"
	"log/slog"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// load loads settings with file as the content of limitgate.yaml; if it is empty there is
// no settings file.
func load(args, environ []string, file string) (*Settings, []Origin, error) {
	if file != "" {
		args = append([]string{"--config=limitgate.yaml"}, args...)
	}
	s, origins, _, err := Load(args, environ, func(path string) ([]byte, error) {
		if path != "limitgate.yaml" {
			return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
		}
		return []byte(file), nil
	})
	return s, origins, err
}

func TestDefaults(t *testing.T) {
	got, _, err := load(nil, []string{"PATH=/bin", "LIMITGATE_REDIS_BIN=/redis"}, "")
	if err != nil {
		t.Fatal(err)
	}
	want := &Settings{
		Listen: "127.0.0.1:6380", Admin: "127.0.0.1:9180", MaxConns: 10000, ShutdownTimeout: 10 * time.Second,
		DecisionTimeout: 5 * time.Millisecond, RetryJitter: 30 * time.Second, Instances: Instances{Source: "static", Count: 1}, BackstopCeiling: 3, CellWeight: 100, JWTTenantClaim: "tenant_id", CanaryThreshold: 500,
		DenyCacheSize: 65536, DenyCacheMaxTTL: time.Second,
		RedisIOTimeout: 250 * time.Millisecond, BreakerCooldown: time.Second, MemoryBuckets: 1000000,
		HTTP:            HTTP{Gateway: "auto", Headers: "draft-11", AddressHeader: "X-Forwarded-For", TrustedHops: 1},
		PrivacyIPMaxTTL: time.Hour, PrivacyIPv4Prefix: 32, PrivacyIPv6Prefix: 64, EMF: EMF{Service: "limitgate"}, LogFormat: "text", RedisAuth: "password", LogLevel: slog.LevelInfo,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the defaults are\n%+v, want\n%+v", got, want)
	}
}

// kinds has three values for a setting of each kind, for file, environment and flag, with
// the resulting value of each.
var kinds = []struct {
	name  string
	texts [3]string
	means [3]any
	get   func(*Settings) any
}{
	{"listen", [3]string{"localhost:1", "127.0.0.2:2", "[::1]:3"}, [3]any{"localhost:1", "127.0.0.2:2", "[::1]:3"}, func(s *Settings) any { return s.Listen }},
	{"admin", [3]string{"localhost:1", `""`, "localhost:3"}, [3]any{"localhost:1", "", "localhost:3"}, func(s *Settings) any { return s.Admin }},
	{"max_conn_age", [3]string{"1h", "0", "168h"}, [3]any{time.Hour, time.Duration(0), 168 * time.Hour}, func(s *Settings) any { return s.MaxConnAge }},
	{"cluster_announce", [3]string{"a.example:1", `""`, "[::1]:3"}, [3]any{"a.example:1", "", "[::1]:3"}, func(s *Settings) any { return s.ClusterAnnounce }},
	{"limits", [3]string{"a.yaml", "b.yaml", "c.yaml"}, [3]any{"a.yaml", "b.yaml", "c.yaml"}, func(s *Settings) any { return s.Limits }},
	{"redis.addrs", [3]string{"a:1", "b:2, c:3", `""`}, [3]any{[]string{"a:1"}, []string{"b:2", "c:3"}, []string(nil)}, func(s *Settings) any { return s.Redis.Addrs }},
	{"decision_timeout", [3]string{"1ms", "2ms", "60s"}, [3]any{time.Millisecond, 2 * time.Millisecond, time.Minute}, func(s *Settings) any { return s.DecisionTimeout }},
	{"retry_jitter", [3]string{"1h", "2s", "0"}, [3]any{time.Hour, 2 * time.Second, time.Duration(0)}, func(s *Settings) any { return s.RetryJitter }},
	{"instances", [3]string{"7", "dns:a.b", "eds:a:1/b/c"}, [3]any{
		Instances{Source: "static", Count: 7}, Instances{Source: "dns", Name: "a.b"}, Instances{Source: "eds", Addr: "a:1", Name: "b/c"},
	}, func(s *Settings) any { return s.Instances }},
	{"backstop.ceiling", [3]string{"1", "2", "100"}, [3]any{1, 2, 100}, func(s *Settings) any { return s.BackstopCeiling }},
	{"deny_cache.size", [3]string{"1", "0", "10000000"}, [3]any{1, 0, 10000000}, func(s *Settings) any { return s.DenyCacheSize }},
	{"deny_cache.max_ttl", [3]string{"1ms", "2s", "1m"}, [3]any{time.Millisecond, 2 * time.Second, time.Minute}, func(s *Settings) any { return s.DenyCacheMaxTTL }},
	{"breaker.cooldown", [3]string{"10ms", "2s", "1m"}, [3]any{10 * time.Millisecond, 2 * time.Second, time.Minute}, func(s *Settings) any { return s.BreakerCooldown }},
	{"redis.declared_keys", [3]string{"false", "true", "false"}, [3]any{false, true, false}, func(s *Settings) any { return s.RedisDeclaredKeys }},
	{"memory.buckets", [3]string{"1000", "2000", "100000000"}, [3]any{1000, 2000, 100000000}, func(s *Settings) any { return s.MemoryBuckets }},
	{"http.listen", [3]string{"localhost:1", `""`, "unix:/run/a.sock"}, [3]any{"localhost:1", "", "unix:/run/a.sock"}, func(s *Settings) any { return s.HTTP.Listen }},
	{"http.gateway", [3]string{"nginx", "envoy", "auto"}, [3]any{"nginx", "envoy", "auto"}, func(s *Settings) any { return s.HTTP.Gateway }},
	{"http.headers", [3]string{"draft-03", "legacy", "off"}, [3]any{"draft-03", "legacy", "off"}, func(s *Settings) any { return s.HTTP.Headers }},
	{"http.tenant_header", [3]string{"X-A", `""`, "X-C"}, [3]any{"X-A", "", "X-C"}, func(s *Settings) any { return s.HTTP.TenantHeader }},
	{"http.cost_header", [3]string{"X-A", `""`, "X-C"}, [3]any{"X-A", "", "X-C"}, func(s *Settings) any { return s.HTTP.CostHeader }},
	{"http.dim_headers", [3]string{"user=X-User", "user=X-User, region=X-Region", `""`}, [3]any{
		[]DimHeader{{"user", "X-User"}}, []DimHeader{{"user", "X-User"}, {"region", "X-Region"}}, []DimHeader(nil),
	}, func(s *Settings) any { return s.HTTP.DimHeaders }},
	{"http.address_header", [3]string{"Forwarded", "X-Real-IP", "X-Forwarded-For"}, [3]any{"Forwarded", "X-Real-IP", "X-Forwarded-For"}, func(s *Settings) any { return s.HTTP.AddressHeader }},
	{"http.trusted_hops", [3]string{"0", "2", "32"}, [3]any{0, 2, 32}, func(s *Settings) any { return s.HTTP.TrustedHops }},
	{"http.trusted_cidrs", [3]string{"10.0.0.0/8", "10.1.2.3/8, 2001:db8::1", `""`}, [3]any{
		[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::1/128")}, []netip.Prefix(nil),
	}, func(s *Settings) any { return s.HTTP.TrustedCIDRs }},
	{"pprof", [3]string{"true", "false", "true"}, [3]any{true, false, true}, func(s *Settings) any { return s.Pprof }},
	{"log.format", [3]string{"json", "text", "json"}, [3]any{"json", "text", "json"}, func(s *Settings) any { return s.LogFormat }},
	{"log.denials", [3]string{"true", "false", "true"}, [3]any{true, false, true}, func(s *Settings) any { return s.LogDenials }},
	{"log.level", [3]string{"debug", "warn", "error"}, [3]any{slog.LevelDebug, slog.LevelWarn, slog.LevelError}, func(s *Settings) any { return s.LogLevel }},
	{"emf.sink", [3]string{"file:/a.json", `""`, "tcp:localhost:25888"}, [3]any{"file:/a.json", "", "tcp:localhost:25888"}, func(s *Settings) any { return s.EMF.Sink }},
	{"emf.service", [3]string{"a", "b-1", "c.d"}, [3]any{"a", "b-1", "c.d"}, func(s *Settings) any { return s.EMF.Service }},
	{"webhook.url", [3]string{"https://a/", "https://b/", "http://[::1]:80/"}, [3]any{"https://a/", "https://b/", "http://[::1]:80/"}, func(s *Settings) any { return s.WebhookURL }},
	{"webhook.secret_file", [3]string{"a", "b", "c"}, [3]any{"a", "b", "c"}, func(s *Settings) any { return s.WebhookSecretFile }},
	{"otlp.endpoint", [3]string{"http://127.0.0.1:4318", `""`, "https://b.example/v1/traces"}, [3]any{"http://127.0.0.1:4318", "", "https://b.example/v1/traces"}, func(s *Settings) any { return s.OTLPEndpoint }},
	{"privacy.ip_secret_file", [3]string{"a", "b", "c"}, [3]any{"a", "b", "c"}, func(s *Settings) any { return s.PrivacyIPSecretFile }},
	{"privacy.ip_max_ttl", [3]string{"1m", "2m", "3m"}, [3]any{time.Minute, 2 * time.Minute, 3 * time.Minute}, func(s *Settings) any { return s.PrivacyIPMaxTTL }},
	{"privacy.ipv4_prefix", [3]string{"1", "24", "32"}, [3]any{1, 24, 32}, func(s *Settings) any { return s.PrivacyIPv4Prefix }},
	{"privacy.ipv6_prefix", [3]string{"1", "56", "128"}, [3]any{1, 56, 128}, func(s *Settings) any { return s.PrivacyIPv6Prefix }},
}

func TestFlagBeatsEnvironmentBeatsFile(t *testing.T) {
	for _, k := range kinds {
		r := newTable(new(Settings)).named(k.name)
		unquoted := func(i int) string { return strings.Trim(k.texts[i], `"`) }
		file := k.name + ": " + k.texts[0]
		switch {
		case strings.HasPrefix(k.name, "http.") && k.name != "http.listen": // they need an address
			file += "\nhttp.listen: 127.0.0.1:8080"
		case k.name == "webhook.url":
			file += "\nwebhook.secret_file: a"
		case k.name == "webhook.secret_file":
			file += "\nwebhook.url: https://a/"
		}
		environ := []string{r.env() + "=" + unquoted(1)}
		args := []string{r.flag() + "=" + unquoted(2)}
		for i, sources := range []struct {
			args, environ []string
			source        string
		}{
			{nil, nil, "file limitgate.yaml:1"},
			{nil, environ, "env " + r.env()},
			{args, environ, "flag " + r.flag()},
		} {
			s, origins, err := load(sources.args, sources.environ, file)
			if err != nil {
				t.Errorf("%s: %v", k.name, err)
				continue
			}
			if got := k.get(s); !reflect.DeepEqual(got, k.means[i]) {
				t.Errorf("%s is %#v from %s, want %#v", k.name, got, sources.source, k.means[i])
			}
			if want := (Origin{k.name, unquoted(i), sources.source}); !slices.Contains(origins, want) {
				t.Errorf("%+v is not among the origins %+v", want, origins)
			}
		}
	}
}

func TestSettingsFileForms(t *testing.T) {
	for _, file := range []string{
		"privacy:\n  ip_max_ttl: 2m\n  ipv6_prefix: 56\nredis: [a:1, 'b:2']\n",
		"privacy.ip_max_ttl: 2m\nprivacy.ipv6_prefix: 56\nredis: a:1,b:2\n",
		"# all\n---\nprivacy: {ip_max_ttl: '2m'}\nprivacy.ipv6_prefix: 56\nredis:\n- a:1\n- b:2\n...\n",
	} {
		s, _, err := load(nil, nil, file)
		if err != nil {
			t.Errorf("%s\n%v", file, err)
			continue
		}
		if s.PrivacyIPMaxTTL != 2*time.Minute || s.PrivacyIPv6Prefix != 56 || !slices.Equal(s.Redis.Addrs, []string{"a:1", "b:2"}) {
			t.Errorf("%s\nmeans %+v", file, s)
		}
	}
	for _, file := range []string{"# nothing\n", "---\n", "privacy:\n  # ip_max_ttl: 1h\n", "{}"} {
		if _, _, err := load(nil, nil, file); err != nil {
			t.Errorf("%q sets nothing, but %v", file, err)
		}
	}
}

func TestOriginNamesTheLine(t *testing.T) {
	_, origins, err := load(nil, nil, "\n\npprof: true\nprivacy:\n\n  ip_max_ttl: 2m\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Origin{
		{"pprof", "true", "file limitgate.yaml:3"},
		{"privacy.ip_max_ttl", "2m", "file limitgate.yaml:6"},
		{"config", "limitgate.yaml", "flag --config"},
		{"listen", "127.0.0.1:6380", "default"},
	} {
		if !slices.Contains(origins, want) {
			t.Errorf("%+v is not among %+v", want, origins)
		}
	}
}

// TestDefaultWithRedis: with a Redis the default of instances is heartbeat, and it is
// shown as such.
func TestDefaultWithRedis(t *testing.T) {
	for _, row := range []struct {
		args, file string
		want       Origin
	}{
		{"", "", Origin{"instances", "1", "default"}},
		{"--redis=a:1", "", Origin{"instances", "heartbeat", "default"}},
		{"", "redis: a:1", Origin{"instances", "heartbeat", "default"}},
		{"--redis=", "redis: a:1", Origin{"instances", "1", "default"}},
		{"--redis=a:1 --instances=1", "", Origin{"instances", "1", "flag --instances"}},
		{"--redis=a:1", "instances: 1", Origin{"instances", "1", "file limitgate.yaml:1"}},
		{"--redis=a:1", "instances: heartbeat", Origin{"instances", "heartbeat", "file limitgate.yaml:1"}},
	} {
		s, origins, err := load(strings.Fields(row.args), nil, row.file)
		if err != nil || !slices.Contains(origins, row.want) || s.Instances.String() != row.want.Value {
			t.Errorf("%q %q: %+v, %v, want %+v", row.args, row.file, origins, err, row.want)
		}
	}
}

func TestFlagForms(t *testing.T) {
	s, _, rest, err := Load([]string{"-listen", "localhost:1", "--pprof", "--unsafe-open=false", "-instances=2", "--instances", "3", "x", "--pprof=no"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Listen != "localhost:1" || !s.Pprof || s.UnsafeOpen || s.Instances.Count != 3 {
		t.Errorf("the flags mean %+v", s)
	}
	if !slices.Equal(rest, []string{"x", "--pprof=no"}) {
		t.Errorf("behind the flags is %q", rest)
	}
	if _, _, rest, err = Load([]string{"--pprof", "--", "--json"}, nil, nil); err != nil || !slices.Equal(rest, []string{"--json"}) {
		t.Errorf("behind -- is %q, %v", rest, err)
	}
	for _, help := range []string{"-h", "-help", "--help"} {
		if _, _, _, err := Load([]string{"--wrong", "--pprof", help}, nil, nil); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s gives %v", help, err)
		}
	}
}

func TestConfigFromTheEnvironment(t *testing.T) {
	_, origins, err := load(nil, []string{"LIMITGATE_CONFIG=limitgate.yaml"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if want := (Origin{"config", "limitgate.yaml", "env LIMITGATE_CONFIG"}); !slices.Contains(origins, want) {
		t.Errorf("%+v is not among %+v", want, origins)
	}
	// The flag overrides the variable, also with an empty value.
	if _, _, err := load([]string{"--config="}, []string{"LIMITGATE_CONFIG=missing.yaml"}, ""); err != nil {
		t.Errorf("no settings file was asked for, but %v", err)
	}
}

func TestForeignVariables(t *testing.T) {
	environ := []string{
		"LIMITGATE=1", "limitgate_x=1", "LIMITGATE_ALL=1", "LIMITGATE_APT=1", "LIMITGATE_DYNAMODB=x", "LIMITGATE_MOTO=x", "LIMITGATE_PROMTOOL=x", "LIMITGATE_REDIS_BIN=x",
		// Kubernetes sets these for Services called limitgate and limitgate-admin.
		"LIMITGATE_SERVICE_HOST=10.0.0.1", "LIMITGATE_SERVICE_PORT=6380", "LIMITGATE_SERVICE_PORT_REDIS=6380",
		"LIMITGATE_PORT=tcp://10.0.0.1:6380", "LIMITGATE_PORT_6380_TCP=tcp://10.0.0.1:6380",
		"LIMITGATE_PORT_6380_TCP_PROTO=tcp", "LIMITGATE_PORT_6380_TCP_PORT=6380", "LIMITGATE_PORT_6380_TCP_ADDR=10.0.0.1",
		"LIMITGATE_ADMIN_SERVICE_HOST=10.0.0.2", "LIMITGATE_ADMIN_PORT_9180_TCP=tcp://10.0.0.2:9180",
	}
	if _, _, err := load(nil, environ, ""); err != nil {
		t.Error(err)
	}
}

// TestEarlierNames: the earlier names of settings set the same, with a warning that has the
// name of today, and mistakes are about the name that was written.
func TestEarlierNames(t *testing.T) {
	args := []string{"--store-io-timeout=1s", "--cell", "a", "--tcp-keepalive=1m", "--store-separate-checks"}
	environ := []string{"LIMITGATE_UPDATES_QUEUE=https://sqs.example/q", "LIMITGATE_CELL_WEIGHT=7", "LIMITGATE_STORE_DECLARED_KEYS=true"}
	file := "limits: dynamodb://limits\nredis: a:1\nmemory_buckets: 2000\nlog_level: warn\ncells_table: cells\nrollout_gate: appconfig://a/b/c\n"
	s, origins, err := load(args, environ, file)
	if err != nil {
		t.Fatal(err)
	}
	if s.RedisIOTimeout != time.Second || s.Cell != "a" || s.Updates != "https://sqs.example/q" || s.CellWeight != 7 || !s.RedisDeclaredKeys ||
		!slices.Equal(s.Redis.Addrs, []string{"a:1"}) || s.MemoryBuckets != 2000 || s.LogLevel != slog.LevelWarn || s.CellsTable != "cells" || s.RolloutGate != "appconfig://a/b/c" {
		t.Errorf("the settings are %+v", s)
	}
	for _, want := range []string{
		"--store-io-timeout is called --redis-io-timeout now", "--cell is called --cells-id now",
		"--tcp-keepalive has no effect any more: the kernel probes silent clients after 5 minutes",
		"--store-separate-checks has no effect any more: equal checks are decided in one step, with the same results",
		"LIMITGATE_UPDATES_QUEUE is called LIMITGATE_UPDATES now", "LIMITGATE_CELL_WEIGHT is called LIMITGATE_CELLS_WEIGHT now",
		"LIMITGATE_STORE_DECLARED_KEYS is called LIMITGATE_REDIS_DECLARED_KEYS now",
		"limitgate.yaml:2: redis is called redis.addrs now: write addrs below redis", "limitgate.yaml:3: memory_buckets is called memory.buckets now: write buckets below memory",
		"limitgate.yaml:4: log_level is called log.level now: write level below log", "limitgate.yaml:5: cells_table is called cells.table now: write table below cells", "limitgate.yaml:6: rollout_gate is called rollout.gate now: write gate below rollout",
	} {
		if !slices.Contains(s.Warnings, want) {
			t.Errorf("no warning %q", want)
		}
	}
	if len(s.Warnings) != 12 {
		t.Errorf("%d warnings: %q", len(s.Warnings), s.Warnings)
	}
	for _, want := range []Origin{{"redis.io_timeout", "1s", "flag --store-io-timeout"}, {"redis.addrs", "a:1", "file limitgate.yaml:2"}} {
		if !slices.Contains(origins, want) {
			t.Errorf("%+v is not among %+v", want, origins)
		}
	}
}

// TestEarlierAndPresentName: a file that has a setting under both names is refused; redis may
// be a section, or the addresses as before.
func TestEarlierAndPresentName(t *testing.T) {
	_, _, err := load(nil, nil, "log_level: warn\nlog:\n  level: info\n")
	if err == nil || err.Error() != "limitgate.yaml:3: log.level: it is the same setting as log_level; remove one of them" {
		t.Errorf("got %v", err)
	}
	for _, file := range []string{"redis:\n", "redis: ~\n"} {
		if _, _, err := load(nil, nil, file); err == nil || !strings.Contains(err.Error(), "the value is missing") {
			t.Errorf("%q: %v", file, err)
		}
	}
	for _, environ := range [][]string{
		{"LIMITGATE_REDIS_IO_TIMEOUT=2s", "LIMITGATE_STORE_IO_TIMEOUT=1s"},
		{"LIMITGATE_CELL=a", "LIMITGATE_CELLS_ID=b"},
		{"LIMITGATE_UPDATES_QUEUE=https://q", "LIMITGATE_UPDATES_TOPIC=arn:aws:sns:eu-west-1:1:t"},
	} {
		if _, _, err := load(nil, environ, ""); err == nil || !strings.Contains(err.Error(), "it is the same setting as") {
			t.Errorf("%v: %v", environ, err)
		}
	}
	for _, args := range [][]string{{"--updates-queue=https://q", "--updates-topic="}, {"--updates-topic=", "--updates-queue=https://q"}} {
		if s, _, err := load(args, []string{"LIMITGATE_UPDATES_TOPIC="}, "updates_topic: ''\nupdates_queue: ''\n"); err != nil || s.Updates != "https://q" {
			t.Errorf("%v: %+v, %v", args, s, err)
		}
	}
	for _, file := range []string{"redis: {addrs: [a:1], io_timeout: 1s}\n", "redis.addrs: a:1\nredis.io_timeout: 1s\n", "redis: {}\n"} {
		if s, _, err := load(nil, nil, file); err != nil || len(s.Warnings) > 0 || strings.Contains(file, "[a:1]") && len(s.Redis.Addrs) != 1 {
			t.Errorf("%q: %+v, %v", file, s, err)
		}
	}
}

// TestEveryEarlierName: each earlier name sets the present setting, from each source in which
// its name differs from the present one.
func TestEveryEarlierName(t *testing.T) {
	texts := map[string]string{"redis.addrs": "a:1", "updates": "https://q", "cells.weight": "7", "redis.io_timeout": "1s", "redis.declared_keys": "true", "memory.buckets": "2000", "log.format": "json", "log.level": "warn"}
	names := 0
	for _, r := range newTable(new(Settings)) {
		for _, old := range r.was {
			names++
			text := cmp.Or(texts[r.name], "x")
			if r.name == "cells.id" || r.name == "cells.table" || r.name == "rollout.gate" {
				continue // they need others: see TestEarlierNames
			}
			for source, load := range map[string]func() (*Settings, []Origin, error){
				flagName(old): func() (*Settings, []Origin, error) { return load([]string{flagName(old) + "=" + text}, nil, "") },
				envName(old):  func() (*Settings, []Origin, error) { return load(nil, []string{envName(old) + "=" + text}, "") },
				old:           func() (*Settings, []Origin, error) { return load(nil, nil, old+": "+text+"\n") },
			} {
				s, origins, err := load()
				if err != nil || !slices.ContainsFunc(origins, func(o Origin) bool { return o.Name == r.name && o.Value == text }) {
					t.Errorf("%s does not set %s: %v", source, r.name, err)
					continue
				}
				if same := source == r.flag() || source == r.env(); same == (len(s.Warnings) == 1) {
					t.Errorf("%s: warnings %q", source, s.Warnings)
				}
			}
		}
	}
	if names < 12 {
		t.Errorf("%d earlier names", names)
	}
}

// TestPatience: a long decision timeout gets a warning if there is a store that can be waited for.
func TestPatience(t *testing.T) {
	for _, row := range []struct {
		args []string
		want []string
	}{
		{[]string{"--decision-timeout", "5s", "--redis", "127.0.0.1:6379"}, []string{"--decision-timeout 5s: while a master is down a check may take as long"}},
		{[]string{"--decision-timeout", "100ms", "--redis", "127.0.0.1:6379"}, nil},
		{[]string{"--decision-timeout", "5s"}, nil},
	} {
		s, _, _, err := Load(row.args, nil, nil)
		if err != nil || !slices.Equal(s.Warnings, row.want) {
			t.Errorf("%v: %v, %+v", row.args, err, s)
		}
	}
}

// TestEmptyRedis: a store that is given and empty, as by a variable of a shell that is not set, gets a warning.
func TestEmptyRedis(t *testing.T) {
	const text = ": it is empty, so that the store is the memory of this process: each proxy admits whole limits for itself"
	for _, row := range []struct {
		args, environ []string
		want          []string
	}{
		{nil, []string{"LIMITGATE_REDIS="}, []string{"env LIMITGATE_REDIS" + text}},
		{[]string{"--redis", ""}, nil, []string{"flag --redis" + text}},
		{[]string{"--redis", "a:1"}, []string{"LIMITGATE_REDIS="}, nil},
		{[]string{"--redis-sentinel", "master=m,a:1"}, []string{"LIMITGATE_REDIS="}, nil},
		{nil, nil, nil},
	} {
		s, _, _, err := Load(row.args, row.environ, nil)
		if err != nil || !slices.Equal(s.Warnings, row.want) {
			t.Errorf("%v %v: %v, %+v", row.args, row.environ, err, s)
		}
	}
}
