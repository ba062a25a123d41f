package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// row is a client with some settings.
type row struct {
	client   string
	settings string   // as in the table
	command  []string // the driver
	more     []string // last arguments of the driver
	resp     string   // 2, 3, or empty for the client's default
	single   bool
	cluster  bool
	missing  string // the reason why it cannot run
}

// modes returns the modes in which the client can run.
func (r row) modes() (modes []string) {
	if r.missing != "" {
		return nil
	}
	if r.single {
		modes = append(modes, "single")
	}
	if r.cluster {
		modes = append(modes, "cluster")
	}
	return modes
}

// outcome is the result of a driver, and the version of the protocol that the server saw.
type outcome struct {
	Version string
	Steps   map[string]string
	resp    string
}

// driverTimeout bounds one driver. They take a second or less each.
const driverTimeout = 60 * time.Second

// drive runs the driver of a row against a proxy of its own.
func drive(tb testing.TB, r row, mode string) outcome {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), driverTimeout)
	defer cancel()
	p := serve(tb, limits)
	host, port, err := net.SplitHostPort(p.Addr)
	if err != nil {
		tb.Fatal(err)
	}
	resp := r.resp
	if resp == "" {
		resp = "default"
	}
	args := slices.Concat(r.command[1:], []string{host, port, mode, resp}, r.more)
	out, err := talk(ctx, p, exec.CommandContext(ctx, r.command[0], args...))
	if err != nil {
		return outcome{Steps: map[string]string{"check": err.Error()}}
	}
	if r.resp != "" && out.resp != "" && out.resp != r.resp {
		out.Steps["check"] = "the server saw RESP" + out.resp
	}
	return out
}

// talk runs a driver, kills its connections when it asks for that, and parses its last
// line.
func talk(ctx context.Context, p *proxy, cmd *exec.Cmd) (out outcome, err error) {
	last, err := converse(cmd, "kill", func() string {
		if out.resp, err = p.killOthers(ctx); err != nil {
			return "not killed: " + err.Error()
		}
		return "killed"
	})
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal([]byte(last), &out); err != nil {
		return out, fmt.Errorf("the driver says last %q: %w", last, err)
	}
	return out, nil
}

// converse runs a program, answers its line asks, and returns its last line.
func converse(cmd *exec.Cmd, asks string, answer func() string) (last string, err error) {
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if last = lines.Text(); last == asks {
			// A program that no longer reads reports the reason at its end.
			_, _ = io.WriteString(in, answer()+"\n")
		}
	}
	if err := cmd.Wait(); err != nil {
		return last, fmt.Errorf("%w, after the line %q: %s", err, last, tail(complaints.String()))
	}
	return last, nil
}

// tail returns the end of a driver's error output, on one line.
func tail(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return text[max(0, len(text)-400):]
}

// wrong returns the failed steps, with their results.
func (o outcome) wrong() (problems []string) {
	for _, step := range []string{"check", "pipeline", "denial", "error", "dialect", "reconnect"} {
		if saw, found := o.Steps[step]; found && !good(saw) {
			problems = append(problems, step+": "+saw)
		}
	}
	return problems
}

// good reports whether a step succeeded, or does not exist in this client.
func good(saw string) bool { return saw == "ok" || saw == "-" || saw == byHand }

// byHand is the result of a driver that had to reconnect by itself, because its library
// leaves that to the program.
const byHand = "by hand"
