// Command redispipe feeds redis-cli --pipe, which counts replies and shows none.
package main

import (
	"fmt"
	"strings"

	"github.com/limitgate/limitgate/clients/go/program"
	"github.com/limitgate/limitgate/clients/go/steps"
)

func main() {
	w := steps.Read()
	steps.Print(program.Version("redis-cli"), []steps.Step{
		{Name: "pipeline", Run: func() error {
			if err := pipe(w, 40, []string{"RL.CHECK", "piped", "-", "-", "1"}, 0); err != nil {
				return err
			}
			return program.Left(w, "piped", 20)
		}},
		{Name: "error", Run: func() error { return pipe(w, 3, []string{"RL.CHECK", "piped", "-", "-", "bad"}, 3) }},
		{Name: "dialect", Run: func() error { return pipe(w, 7, []string{"CL.THROTTLE", "key", "5", "10", "60", "1"}, 0) }},
	})
}

// pipe sends a command so many times, and fails unless each got a reply and so many of
// the replies were errors.
func pipe(w steps.Wanted, times int, command []string, wrong int) error {
	var input strings.Builder
	for range times {
		fmt.Fprintf(&input, "*%d\r\n", len(command))
		for _, word := range command {
			fmt.Fprintf(&input, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	cli := program.Command("redis-cli", w, "--pipe")
	cli.Stdin = strings.NewReader(input.String())
	out, _ := cli.CombinedOutput() // its status reports error replies
	if want := fmt.Sprintf("errors: %d, replies: %d", wrong, times); !strings.Contains(string(out), want) {
		return fmt.Errorf("redis-cli prints %q, not %q", out, want)
	}
	return nil
}
