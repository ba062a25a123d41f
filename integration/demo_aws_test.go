package integration

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/leftout"
)

// freePorts returns ports without a listener.
func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	return ports
}

// TestDemoAWS runs the commands of docs/limits-as-data.md as `make demo-aws` does, and
// compares their output with the page, except for values that differ between runs.
func TestDemoAWS(t *testing.T) {
	leftout.WithoutAWS(t)
	ports := freePorts(t, 3)
	demo := exec.Command("bash", "scripts/demo_aws.sh")
	demo.Dir = ".."
	demo.Env = append(os.Environ(),
		"PATH="+filepath.Dir(os.Getenv("LIMITGATE_MOTO"))+string(os.PathListSeparator)+os.Getenv("PATH"),
		"DEMO_EMULATOR_PORT="+ports[0], "DEMO_PORT="+ports[1], "DEMO_ADMIN_PORT="+ports[2], "DEMO_REPLACE=s|bin/limitgate|"+binaries.release+"|g",
	)
	var out, errs bytes.Buffer
	demo.Stdout, demo.Stderr = &out, &errs
	if err := demo.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	shown := 0
	rest := timeOfDay.ReplaceAllString(out.String(), "T")
	for _, e := range examples(t, "../docs/limits-as-data.md") {
		for _, line := range e.shows {
			line = timeOfDay.ReplaceAllString(line, "T")
			// The text after the first of these is a time or an address.
			if i := strings.Index(line, "full again"); i >= 0 {
				line = line[:i]
			}
			i := strings.Index(rest, line)
			if i < 0 {
				t.Fatalf("%s\ndoes not print %q, where there is left\n%s%s", e.command, line, rest, errs.String())
			}
			rest = rest[i+len(line):]
			shown++
		}
	}
	if shown < 10 {
		t.Errorf("only %d lines are compared", shown)
	}
}

// TestDemoAWSPorts: a port that is in use is reported before anything starts, and how to choose another one.
func TestDemoAWSPorts(t *testing.T) {
	leftout.WithoutAWS(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	free := freePorts(t, 3)
	for i, name := range []string{"DEMO_EMULATOR_PORT", "DEMO_PORT", "DEMO_ADMIN_PORT"} {
		demo := exec.Command("bash", "scripts/demo_aws.sh")
		demo.Dir = ".."
		demo.Env = append(os.Environ(), "PATH="+filepath.Dir(os.Getenv("LIMITGATE_MOTO"))+string(os.PathListSeparator)+os.Getenv("PATH"),
			"DEMO_EMULATOR_PORT="+free[0], "DEMO_PORT="+free[1], "DEMO_ADMIN_PORT="+free[2], name+"="+port)
		out, err := demo.CombinedOutput()
		if err == nil || !strings.HasPrefix(string(out), "make demo-aws: port "+port+" is in use, and the ") || !strings.Contains(string(out), "choose another port, such as make demo-aws "+name+"=") || strings.Count(string(out), "\n") > 1 {
			t.Errorf("%d: %v\n%s", i, err, out)
		}
	}
}
