package clients

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"syscall"
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
	noTLS    string // the reason why it cannot use TLS or users
	// noCertificate is the reason why it cannot show a certificate, although it uses TLS.
	noCertificate string
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

// secured returns the row for the settings of production.
func (r row) secured() row {
	r.missing = cmp.Or(r.missing, r.noTLS)
	return r
}

// outcome is the result of a driver, and the connections that the server saw.
type outcome struct {
	Version string
	Steps   map[string]string
	seen
}

// driverTimeout bounds one driver. They take a second or less each.
const driverTimeout = 60 * time.Second

// drive runs the driver of a row against a proxy of its own.
func drive(tb testing.TB, r row, mode string, a access) outcome {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), driverTimeout)
	defer cancel()
	p := a.serve(tb, limits)
	defer p.close(tb)
	host, port, err := net.SplitHostPort(p.Addr)
	if err != nil {
		tb.Fatal(err)
	}
	words := slices.Concat(r.command, []string{host, port, mode, cmp.Or(r.resp, "default")}, r.more)
	out, err := talk(ctx, p, program(ctx, a, words))
	if err != nil {
		return outcome{Steps: map[string]string{"check": err.Error()}}
	}
	switch {
	case len(out.wrong()) > 0: // it has the reason
	case r.resp != "" && out.resp != "" && out.resp != r.resp:
		out.Steps["check"] = "the server saw RESP" + out.resp
	case out.user != "" && out.user != a.user:
		out.Steps["check"] = "the server saw the users " + out.user
	}
	return out
}

// program returns a program with the credentials of an access. When the context ends, it is
// killed with the programs that it runs.
func program(ctx context.Context, a access, words []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(cmd.Environ(), a.environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// talk runs a driver, kills its connections when it asks for that, and parses its last
// line.
func talk(ctx context.Context, p *proxy, cmd *exec.Cmd) (out outcome, err error) {
	var left error
	last, err := converse(cmd, "kill", func() string {
		if out.seen, left = p.cut(ctx); left != nil {
			return "not killed: " + left.Error()
		}
		return "killed"
	})
	if err != nil {
		return out, errors.Join(left, err)
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
