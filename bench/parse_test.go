package bench

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestSchedstatIsRead(t *testing.T) {
	if got, err := parseSchedstat([]byte("123456789 4711 42\n")); err != nil || got != 123456789 {
		t.Errorf("parseSchedstat = %d, %v", got, err)
	}
	if _, err := parseSchedstat([]byte("\n")); err == nil {
		t.Error("an empty schedstat was read")
	}
}

func TestStatOfTheMachineIsReadWithoutIdling(t *testing.T) {
	const text = "cpu  10 20 30 4000 500 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
	if got, err := parseStat([]byte(text)); err != nil || got != (10+20+30+6+7+8)*tick {
		t.Errorf("parseStat = %v, %v", got, err)
	}
	for _, text := range []string{"", "cpu 1 2 3\n", "cpu a b c d e f g h i\n", "intr 1 2 3 4 5 6 7 8 9\n"} {
		if _, err := parseStat([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestCPUTimeOfThisProcessGrowsWithItsWork(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only Linux reports the CPU time of threads")
		return
	}
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const work = 20 * time.Millisecond
	for begin := time.Now(); ; {
		after, err := cpuTime(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if after-before >= work {
			return
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("30 s of work cost %v", after-before)
		}
	}
}

func TestProcessThatIsGoneHasNoCPUTime(t *testing.T) {
	if _, err := cpuTime(1 << 30); err == nil {
		t.Error("there was one")
	}
}

func TestFieldsOfProcFilesAreRead(t *testing.T) {
	const text = "Name:\tlimitgate\nVmHWM:\t  137216 kB\nVmRSS:\t  1024 kB\nThreads:\t7\n"
	if got := kibField([]byte(text), "VmHWM"); got != 137216<<10 {
		t.Errorf("VmHWM = %d", got)
	}
	if got := kibField([]byte(text), "VmSwap"); got != 0 {
		t.Errorf("VmSwap = %d, want 0", got)
	}
	if got := colonField([]byte("processor\t: 0\nmodel name\t: AMD EPYC\n"), "model name"); got != "AMD EPYC" {
		t.Errorf("model name = %q", got)
	}
}

func TestOutputOfRedisBenchmarkIsRead(t *testing.T) {
	const out = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"INCR t__rand_int__","82034.45","0.412","0.112","0.407","0.583","0.767","2.191"
`
	s, err := parseRedisBenchmark([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	if s.perSecond != 82034.45 || s.p50 != 0.407 || s.p99 != 0.767 || s.p999 != absent {
		t.Errorf("sample = %+v", s)
	}
	for name, out := range map[string]string{
		"nothing":   "",
		"no test":   strings.SplitAfter(out, "\n")[0],
		"no column": strings.Replace(out, `"rps"`, `"tps"`, 1),
		"no number": strings.Replace(out, `"82034.45"`, `"nan?"`, 1),
		"no time":   strings.Replace(out, `"82034.45"`, `"0.00"`, 1),
	} {
		if s, err := parseRedisBenchmark([]byte(out)); err == nil {
			t.Errorf("%s: read as %+v", name, s)
		}
	}
}

func TestMetricsAreRead(t *testing.T) {
	metrics, err := parseMetrics(strings.NewReader(`# HELP go_gc_duration_seconds A summary.
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{quantile="0"} 2.3e-05
go_gc_duration_seconds{quantile="1"} 0.000191
limitgate_memory_buckets 1e+06

`))
	if err != nil {
		t.Fatal(err)
	}
	if metrics[`go_gc_duration_seconds{quantile="1"}`] != 0.000191 || metrics["limitgate_memory_buckets"] != 1e6 || len(metrics) != 3 {
		t.Errorf("metrics = %v", metrics)
	}
	if _, err := parseMetrics(strings.NewReader("up down\n")); err == nil {
		t.Error("a metric without a number was read")
	}
}
