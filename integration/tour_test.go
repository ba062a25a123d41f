package integration

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

// clusterPorts returns the first of six consecutive ports without a listener, which are low enough
// for the bus of a Redis Cluster, 10,000 above each.
func clusterPorts(t *testing.T) int {
	t.Helper()
next:
	for range 100 {
		first := 20000 + rand.IntN(2000) // with the ports for the bus below those that the system gives to others
		for port := first; port < first+6; port++ {
			for _, p := range []int{port, port + 10000} {
				l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
				if err != nil {
					continue next
				}
				defer func() { _ = l.Close() }()
			}
		}
		return first
	}
	t.Fatal("no six consecutive ports are free")
	return 0
}

// redisInPath returns the environment of this process, with the programs of Redis in PATH.
func redisInPath() []string {
	path := os.Getenv("PATH")
	if redis := os.Getenv("LIMITGATE_REDIS_BIN"); redis != "" {
		path = redis + string(os.PathListSeparator) + path
	}
	return append(os.Environ(), "PATH="+path)
}

// TestKillOfTheTour: local_cluster.sh kills the master that is there, after a failover the new one, says when it is dead already, starts
// both again, and is started once.
func TestKillOfTheTour(t *testing.T) {
	t.Parallel()
	environment := append(redisInPath(), fmt.Sprint("TOUR_PORT=", clusterPorts(t)), "TOUR_FOLDER="+t.TempDir())
	script := func(args ...string) (out string, err error) {
		c := exec.Command("bash", append([]string{"../scripts/local_cluster.sh"}, args...)...)
		c.Env = environment
		all, err := c.CombinedOutput()
		return string(all), err
	}
	defer func() { _, _ = script("stop") }()
	if out, err := script("start"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var killed []string
	dead := 0
	redistest.Eventually(t, time.Minute, "both nodes with the buckets of the tenant are dead", func() bool {
		out, err := script("kill", "acme")
		_, rest, _ := strings.Cut(out, "the master on port ")
		port, rest, _ := strings.Cut(rest, " ")
		switch {
		case err == nil && strings.HasPrefix(out, "killed the master"):
			killed = append(killed, strings.TrimSuffix(port, ","))
		case err != nil && strings.HasPrefix(rest, "is dead already") && len(killed) > 0 && port == killed[len(killed)-1]:
			dead++
		default:
			t.Fatalf("%v\n%s", err, out)
		}
		return len(killed) == 2 && dead >= 2
	})
	if out, err := script("kill", "acme"); err == nil || killed[0] == killed[1] {
		t.Errorf("%v were killed, then %v: %s", killed, err, out)
	}
	slices.Sort(killed)
	if out, err := script("restart"); err != nil || out != "started "+strings.Join(killed, " ")+": the cluster is whole\n" {
		t.Errorf("%v were killed, then %v: %s", killed, err, out)
	}
	if out, err := script("start"); err == nil || !strings.HasPrefix(out, "the cluster runs already, from port ") {
		t.Errorf("a second start: %v, %s", err, out)
	}
}

// TestTour runs the commands of docs/tour.md as `make tour` does, and checks that each prints the
// lines that the page shows, where ... stands for anything.
func TestTour(t *testing.T) {
	first, ports, folder := clusterPorts(t), freePorts(t, 2), t.TempDir()
	tour := exec.Command("bash", "scripts/tour.sh")
	tour.Dir = ".."
	tour.Env = append(redisInPath(), "NO_COLOR=1",
		fmt.Sprint("TOUR_PORT=", first), "TOUR_FOLDER="+folder,
		"LIMITGATE_LISTEN=127.0.0.1:"+ports[0], "LIMITGATE_ADMIN=127.0.0.1:"+ports[1],
		"LIMITGATE_DECISION_TIMEOUT=500ms", // a slow machine must not turn a decision of the store into one of the backstop
		fmt.Sprintf(`TOUR_REPLACE=s|bin/limitgate|%s|g`, binaries.release))
	var out, errs bytes.Buffer
	tour.Stdout, tour.Stderr = &out, &errs
	if err := tour.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	rest := out.String()
	steps := examples(t, "../docs/tour.md")
	for _, e := range steps {
		for _, line := range e.shows {
			for part := range strings.SplitSeq(strings.ReplaceAll(line, "7600", fmt.Sprint(first)), "...") {
				i := strings.Index(rest, part)
				if i < 0 {
					t.Fatalf("%s\ndoes not print %q, where there is left\n%s%s", e.command, line, rest, errs.String())
				}
				rest = rest[i+len(part):]
			}
		}
	}
	if len(steps) != 12 {
		t.Errorf("the tour has %d commands", len(steps))
	}
	for port := first; port < first+6; port++ {
		if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = conn.Close()
			t.Errorf("a server of the tour still listens on port %d", port)
		}
	}
}
