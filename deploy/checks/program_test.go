package checks

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds each run of the program.
const patience = 30 * time.Second

// program is the built limitgate.
type program struct {
	path  string
	flags map[string]bool // of limitgate serve, without their dashes
}

// built builds the program once.
var built = sync.OnceValues(func() (program, error) {
	path, err := release()
	if err != nil {
		return program{}, err
	}
	help, err := exec.Command(path, "serve", "--help").Output()
	if err != nil {
		return program{}, fmt.Errorf("ask limitgate for its flags: %w", err)
	}
	p := program{path, map[string]bool{}}
	for _, match := range regexp.MustCompile(`(?m)^  --([a-z0-9-]+)`).FindAllSubmatch(help, -1) {
		p.flags[string(match[1])] = true
	}
	return p, nil
})

func builtProgram(t *testing.T) program {
	t.Helper()
	p, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// settings returns the settings of limitgate serve by their names. The program refuses
// unknown names, wrong values and wrong combinations.
func (p program) settings(environment []string, args ...string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, p.path, append([]string{"serve", "--print-config", "--json"}, args...)...)
	command.Env = environment
	var complaints strings.Builder
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("print settings: %w: %s", err, strings.TrimSpace(complaints.String()))
	}
	var rows []struct{ Name, Value string }
	if err := json.Unmarshal(output, &rows); err != nil {
		return nil, fmt.Errorf("decode settings: %w", err)
	}
	settings := map[string]string{}
	for _, row := range rows {
		settings[row.Name] = row.Value
	}
	return settings, nil
}

// checkLimits returns the error of limitgate limits lint.
func (p program) checkLimits(text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, p.path, "limits", "lint", "-")
	command.Stdin = strings.NewReader(text)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("check limits: %w: %s", err, out)
	}
	return nil
}

// start serves until the test ends, and returns the admin address.
func (p program) start(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), p.path, append([]string{"serve"}, args...)...)
	command.Env = []string{}
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = patience
	log, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Msg, Admin string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			t.Cleanup(func() {
				_, _ = io.Copy(io.Discard, log)
				_ = command.Wait()
			})
			return line.Admin
		}
		t.Log(lines.Text())
	}
	t.Fatalf("limitgate does not listen: %v", command.Wait())
	return ""
}

// status returns the status of a reply to GET.
func status(t *testing.T, url string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	return reply.StatusCode
}
