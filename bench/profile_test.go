package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

func TestStacksBelongToTheirInnermostGroup(t *testing.T) {
	for _, test := range []struct{ stack, want string }{
		{"internal/runtime/syscall/linux.Syscall6 golang.org/x/sys/unix.write server.(*polled).reply", "kernel write, clients"},
		{"internal/runtime/syscall/linux.Syscall6 golang.org/x/sys/unix.write server.(*eventLoop).post cluster.(*pipeline).run", "kernel write, waking loops"},
		{"internal/runtime/syscall/linux.Syscall6 syscall.read internal/poll.(*FD).Read cluster.(*pipeline).read", "kernel read, store"},
		{"syscall.write os.(*File).Write log/slog.Info", "kernel write"},
		{"internal/runtime/syscall/linux.Syscall6 internal/runtime/syscall/linux.EpollWait runtime.netpoll runtime.schedule", "kernel epoll"},
		{"internal/runtime/syscall/linux.Syscall6 syscall.write net.(*conn).Write crypto/tls.(*Conn).Write server.(*conn).write", "kernel write, clients"},
		{"crypto/internal/fips140/aes/gcm.gcmAesEnc crypto/tls.(*Conn).Write server.(*conn).write", "TLS"},
		{"runtime.futex runtime.notewakeup runtime.wakep cluster.(*pipeline).run", "kernel futex"},
		{"runtime.memmove server.(*commandParser).advance server.(*eventLoop).run", "parsing requests"},
		{"runtime.nextFreeFast runtime.mallocgc limiter.(*Limiter).Start", "garbage and allocation"},
		{"memeqbody memory.(*shard).named limiter.(*Limiter).Start", "deciding (limit, memory)"},
		{"limit.(*Buffer).bind limit.(*Set).Resolve limiter.(*Batch).resolve", "resolving limits"},
		{"limit/bucket.Decide memory.(*shard).take", "deciding (limit, memory)"},
		{"internal/strconv.AppendInt commands.(*reply).number commands.(*Session).Begin", "writing replies"},
		{"commands.(*Session).note", "other commands"},
		{"runtime.schedule runtime.mcall", "scheduler"},
		{"syscall.write internal/poll.(*FD).Write net.(*conn).Write google.golang.org/grpc/internal/transport.(*bufWriter).Flush", "kernel write, clients"},
		{"golang.org/x/net/http2/hpack.(*Encoder).WriteField google.golang.org/grpc/internal/transport.(*loopyWriter).run", "gRPC and HTTP/2"},
		{"google.golang.org/protobuf/internal/impl.(*MessageInfo).unmarshalPointer internal/envoy.boundedCodec.Unmarshal", "protobuf"},
		{"runtime.memmove internal/envoy.(*question).name internal/envoy.(*Service).bind", "Envoy's service (envoy, rlsconfig)"},
		{"runtime.unheardOf", ofRuntime},
		{"main.unheardOf", ofNobody},
		{"", ofNobody},
	} {
		if got := classify(strings.Fields(test.stack)); got != test.want {
			t.Errorf("%s belongs to %q, want %q", test.stack, got, test.want)
		}
	}
}

func TestNamesOfFunctionsAreShort(t *testing.T) {
	for name, want := range map[string]string{
		modulePath + "limit.Merge":                           "limit.Merge",
		modulePath + "cluster.appendBulk[go.shape.[]uint8]":  "cluster.appendBulk[...]",
		"example.org/lru.(*Cache[go.shape.string,int]).Peek": "example.org/lru.(*Cache[...]).Peek",
		"runtime.memmove":                                    "runtime.memmove",
	} {
		if got := shortName(name); got != want {
			t.Errorf("%s is shortened to %s, want %s", name, got, want)
		}
	}
}

// twoStacks is a profile of two stacks; in the second the innermost function is inlined.
func twoStacks(t *testing.T) []byte {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}}
	function := func(name string) profile.Line {
		f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
		p.Function = append(p.Function, f)
		return profile.Line{Function: f}
	}
	sample := func(n int64, lines ...profile.Line) {
		l := &profile.Location{ID: uint64(len(p.Location) + 1), Line: lines}
		p.Location = append(p.Location, l)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l}, Value: []int64{n, n * 1e7}})
	}
	sample(1, function(modulePath+"memory.(*shard).named"))
	sample(3, function(modulePath+"limit.(*Buffer).bind"), function(modulePath+"limiter.(*Limiter).Start"))
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func TestProfileIsReduced(t *testing.T) {
	p, err := reduceProfile(bytes.NewReader(twoStacks(t)))
	if err != nil {
		t.Fatal(err)
	}
	if p.CPU != 0.04 ||
		!slices.Equal(p.Groups, []Share{{"resolving limits", 75}, {"deciding (limit, memory)", 25}}) ||
		!slices.Equal(p.Functions, []Share{{"limit.(*Buffer).bind", 75}, {"memory.(*shard).named", 25}}) {
		t.Errorf("profile = %+v", p)
	}
	if _, err := reduceProfile(strings.NewReader("no profile")); err == nil {
		t.Error("what is no profile was read")
	}
}

// written is a driver whose profile is these bytes, or none.
type written []byte

func (w written) profile(_ context.Context, path string) error {
	if w == nil {
		return nil
	}
	return os.WriteFile(path, w, 0o600)
}

func TestOnlyMissedGoalsAreExplained(t *testing.T) {
	missing := []Figure{{Verdict: met}, {Verdict: missed}}
	for name, test := range map[string]struct {
		quick   bool
		keep    bool
		figures []Figure
		driver  written
		want    bool
		kept    bool
	}{
		"missed":          {figures: missing, driver: twoStacks(t), want: true},
		"missed and kept": {keep: true, figures: missing, driver: twoStacks(t), want: true, kept: true},
		"met":             {figures: missing[:1], driver: twoStacks(t)},
		"met and kept":    {keep: true, figures: missing[:1], driver: twoStacks(t), kept: true},
		"quick":           {quick: true, figures: missing, driver: twoStacks(t)},
		"without a proxy": {figures: missing},
		"quick and kept":  {quick: true, keep: true, figures: missing, driver: twoStacks(t), kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lab{folder: t.TempDir(), running: "redis-p1", settings: Settings{Quick: test.quick}, say: func(string, ...any) {}}
			kept := t.TempDir()
			if test.keep {
				l.profiles = kept
			}
			r := &Result{Figures: test.figures}
			if err := l.profileCase(t.Context(), test.driver, r); err != nil {
				t.Fatal(err)
			}
			if (r.Profile != nil) != test.want {
				t.Errorf("profile = %+v", r.Profile)
			}
			if _, err := os.Stat(filepath.Join(kept, "redis-p1.pprof")); (err == nil) != test.kept {
				t.Errorf("the kept profile: %v", err)
			}
		})
	}
}

func TestScriptsAreTimedForEachDecision(t *testing.T) {
	before := map[string]executions{"evalsha": {100, 1000}, "get": {5, 5}}
	after := map[string]executions{"evalsha": {110, 1500}, "get": {5, 5}, "info": {1, 9}}
	s := &sample{decisions: 250, commands: difference(after, before)}
	if s.scriptMicros() != 2 || s.batch() != 25 || len(s.commands) != 2 {
		t.Errorf("%v us for each decision, %v decisions a script of %+v", s.scriptMicros(), s.batch(), s.commands)
	}
	if none := new(sample); none.scriptMicros() != absent || none.batch() != absent {
		t.Error("there are scripts without a store")
	}
}

// ownType is a type of Limitgate's in a prefix of a group.
var ownType = regexp.MustCompile(`^([a-z/]+)\.\(\*(\w+)\)`)

// TestGroupsNameTypes: every type that a group names is there. A type that got another name would
// move its functions to another group silently.
func TestGroupsNameTypes(t *testing.T) {
	found := 0
	for _, g := range groups {
		for _, prefix := range g.prefixes {
			m := ownType.FindStringSubmatch(prefix)
			if m == nil || m[1] == "runtime" {
				continue
			}
			found++
			files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(m[1]), "*.go"))
			if err != nil {
				t.Fatal(err)
			}
			declared := slices.ContainsFunc(files, func(file string) bool {
				source, err := os.ReadFile(file)
				return err == nil && strings.Contains(string(source), "\ntype "+m[2]+" ")
			})
			if !declared {
				t.Errorf("group %s names %s, and there is no such type", g.name, prefix)
			}
		}
	}
	if found < 8 {
		t.Errorf("%d types are looked for", found)
	}
}
