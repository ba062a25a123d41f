// Package steps has the steps of every Go client with a running Limitgate. The drivers of
// the other languages, in the neighbouring folders, take the same steps.
//
// A driver is called with HOST PORT single|cluster default|2|3, and with [Credentials] in its
// environment. It prints "kill" when its connections are to be killed, waits for a line, and
// ends with one line of JSON: its client's version, and for each step "ok" or the failure.
package steps

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strings"
)

// Client is a client library, as a service would use it.
type Client interface {
	// Do returns integers as int64 and texts as string or []byte.
	Do(args ...string) (any, error)
	// Pipeline sends all commands before it reads the replies.
	Pipeline(commands [][]string) ([]any, error)
	// Refused reports whether an error has the library's type for error replies.
	Refused(err error) bool
	Close()
}

// ErrNotThere is the error of a client that lacks a feature.
var ErrNotThere = errors.New("not in this client")

// Wanted is the kind of connection of the client.
type Wanted struct {
	Addr    string
	Cluster bool
	RESP    string   // 2, 3 or default
	More    []string // further arguments of the command line
	Credentials
}

// Main runs all steps on a client and prints the results.
func Main(version string, open func(Wanted) (Client, error)) {
	wanted := Read()
	client, err := open(wanted)
	if err != nil {
		Print(version, []Step{{"check", func() error { return fmt.Errorf("connect: %w", err) }}})
		return
	}
	Print(version, []Step{
		{"check", func() error { return checkAlone(client) }},
		{"pipeline", func() error { return checkPipelined(client) }},
		{"denial", func() error { return denial(client) }},
		{"error", func() error { return refusal(client) }},
		{"dialect", func() error { return dialect(client) }},
		{"reconnect", func() error { return reconnect(client) }},
	})
	client.Close()
}

// Read reads the command line.
func Read() Wanted {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: HOST PORT single|cluster default|2|3 ...")
		os.Exit(2)
	}
	return Wanted{
		Addr: net.JoinHostPort(os.Args[1], os.Args[2]), Cluster: os.Args[3] == "cluster",
		RESP: os.Args[4], More: os.Args[5:], Credentials: readCredentials(),
	}
}

// Step is one step of a client.
type Step struct {
	Name string
	Run  func() error
}

// Print takes the steps in their order and prints the results.
func Print(version string, steps []Step) {
	saw := map[string]string{}
	for _, step := range steps {
		switch err := step.Run(); {
		case err == nil:
			saw[step.Name] = "ok"
		case errors.Is(err, ErrNotThere):
			saw[step.Name] = "-"
		default:
			saw[step.Name] = err.Error()
		}
	}
	line, err := json.Marshal(map[string]any{"version": version, "steps": saw})
	if err != nil {
		fail(err)
	}
	fmt.Printf("%s\n", line)
}

// Module returns the version of a module in this binary.
func Module(path string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == path {
			return strings.TrimPrefix(dep.Version, "v")
		}
	}
	return "unknown"
}

// Values returns words as the arguments that most clients want.
func Values(words []string) []any {
	out := make([]any, len(words))
	for i, word := range words {
		out[i] = word
	}
	return out
}

// The limit of the matrix: 60 a day in a bucket of 60, so that no unit returns during a
// run.
const (
	checks = 100
	burst  = 60
)

func checkAlone(c Client) error {
	for i := range checks {
		reply, err := c.Do("RL.CHECK", "alone", "-", "-", "1")
		if err != nil {
			return fmt.Errorf("check %d: %w", i+1, err)
		}
		if err := inOrder(i, reply); err != nil {
			return err
		}
	}
	return nil
}

func checkPipelined(c Client) error {
	commands := make([][]string, checks)
	for i := range commands {
		commands[i] = []string{"RL.CHECK", "piped", "-", "-", "1"}
	}
	replies, err := c.Pipeline(commands)
	if err != nil {
		return err
	}
	if len(replies) != checks {
		return fmt.Errorf("%d replies", len(replies))
	}
	for i, reply := range replies {
		if err := inOrder(i, reply); err != nil {
			return err
		}
	}
	return nil
}

// inOrder fails unless a reply is that of check i: each one admitted leaves one
// unit less, and after the last unit all are denied.
func inOrder(i int, reply any) error {
	f, err := fields(reply)
	if err != nil {
		return fmt.Errorf("check %d: %w", i+1, err)
	}
	allowed, left := int64(1), int64(burst-1-i)
	if i >= burst {
		allowed, left = 0, 0
	}
	if f[0] != allowed || f[1] != int64(burst) || f[2] != left || f[5] != "daily" || f[6] != "store" {
		return fmt.Errorf("check %d answers %v", i+1, f)
	}
	return nil
}

// fields returns the seven fields of a decision, texts as strings.
func fields(reply any) ([]any, error) {
	list, ok := reply.([]any)
	if !ok || len(list) != 7 {
		return nil, fmt.Errorf("no decision: %v", reply)
	}
	out := make([]any, len(list))
	for i, field := range list {
		if text, ok := field.([]byte); ok {
			field = string(text)
		}
		out[i] = field
	}
	return out, nil
}

func denial(c Client) error {
	reply, err := c.Do("RL.CHECK", "alone", "-", "-", "1")
	if err != nil {
		return err
	}
	f, err := fields(reply)
	if err != nil {
		return err
	}
	if wait, ok := f[3].(int64); f[0] != int64(0) || !ok || wait <= 0 {
		return fmt.Errorf("answers %v", f)
	}
	return nil
}

func refusal(c Client) error {
	// Some libraries leave out the first word.
	const want = "cost must be an integer between 1 and 2147483647"
	reply, err := c.Do("RL.CHECK", "other", "-", "-", "bad")
	switch {
	case err == nil:
		return fmt.Errorf("answers %v", reply)
	case !c.Refused(err):
		return fmt.Errorf("an error of type %T: %w", err, err)
	case !strings.Contains(err.Error(), want):
		return fmt.Errorf("says %w", err)
	}
	return admitted(c)
}

// admitted fails unless the store admits a check of a tenant that has units.
func admitted(c Client) error {
	reply, err := c.Do("RL.CHECK", "other", "-", "-", "1")
	if err != nil {
		return err
	}
	f, err := fields(reply)
	if err != nil {
		return err
	}
	if f[0] != int64(1) || f[6] != "store" {
		return fmt.Errorf("answers %v", f)
	}
	return nil
}

func dialect(c Client) error {
	reply, err := c.Do("CL.THROTTLE", "key", "5", "10", "60", "1")
	if err != nil {
		return err
	}
	if got := fmt.Sprint(reply); got != "[0 6 5 -1 6]" {
		return errors.New("answers " + got)
	}
	return nil
}

// reconnect has the connections killed. One call may fail by that, and the next has to
// succeed.
func reconnect(c Client) error {
	fmt.Println("kill")
	var answer string
	if _, err := fmt.Scanln(&answer); err != nil || answer != "killed" {
		return fmt.Errorf("told %q: %w", answer, err)
	}
	first := admitted(c)
	if first == nil {
		return nil
	}
	if second := admitted(c); second != nil {
		return fmt.Errorf("%w, and then %w", first, second)
	}
	return nil
}
