// Command redisbenchmark runs redis-benchmark, which shows no replies: the driver checks
// afterwards the units that it took.
package main

import (
	"fmt"
	"strings"

	"github.com/limitgate/limitgate/clients/go/program"
	"github.com/limitgate/limitgate/clients/go/steps"
)

func main() {
	w := steps.Read()
	steps.Print(program.Version("redis-benchmark"), []steps.Step{
		{Name: "check", Run: func() error { return take(w, "alone", "-P", "1") }},
		{Name: "pipeline", Run: func() error { return take(w, "piped", "-P", "20") }},
		{Name: "dialect", Run: func() error {
			if err := bench(w, "-n", "7", "-c", "1", "CL.THROTTLE", "key", "5", "10", "60", "1"); err != nil {
				return err
			}
			out, err := program.Command("redis-cli", steps.Wanted{Addr: w.Addr, Credentials: w.Credentials},
				"--raw", "CL.THROTTLE", "key", "5", "10", "60", "1").Output()
			if err == nil && !strings.HasPrefix(string(out), "1\n6\n") {
				err = fmt.Errorf("after 7 of 6 CL.THROTTLE answers %q", out)
			}
			return err
		}},
	})
}

// take makes 40 checks on two connections.
func take(w steps.Wanted, tenant string, options ...string) error {
	args := append(options, "-n", "40", "-c", "2", "RL.CHECK", tenant, "-", "-", "1")
	if err := bench(w, args...); err != nil {
		return err
	}
	return program.Left(w, tenant, 20)
}

func bench(w steps.Wanted, args ...string) error {
	args = append([]string{"-q"}, args...)
	out, err := program.Command("redis-benchmark", w, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("redis-benchmark: %w: %s", err, out)
	}
	return nil
}
