package commands

import (
	"slices"
	"testing"
)

// TestWeightsAreOfCommands: each name in the lists is that of a command, and in one list.
func TestWeightsAreOfCommands(t *testing.T) {
	h := NewHandler(Options{})
	for _, name := range slices.Concat(lightCommands, longCommands, growingCommands) {
		if h.byFullName([]byte(name)) == nil {
			t.Errorf("%s is no command", name)
		}
	}
	for _, name := range longCommands {
		if slices.Contains(lightCommands, name) {
			t.Errorf("%s is light and long", name)
		}
	}
}

// TestWeigh: commands that wait and commands that are long. A command that MULTI queues
// is light until EXEC.
func TestWeigh(t *testing.T) {
	h := NewHandler(Options{})
	s := h.NewSession(Peer{ID: 1})
	defer s.Close()
	cmd := func(words ...string) (args [][]byte) {
		for _, w := range words {
			args = append(args, []byte(w))
		}
		return args
	}
	many := append([]string{"DEL"}, slices.Repeat([]string{"k"}, manyWords)...)
	for _, c := range []struct {
		words []string
		want  weight
	}{
		{[]string{"ping"}, light},
		{[]string{"CLIENT", "SETNAME", "a"}, light},
		{[]string{"CLIENT"}, waits},
		{[]string{"nonsense"}, light},
		{[]string{"CLIENT", "nonsense"}, light},
		{[]string{"COMMAND", "DOCS"}, light},
		{append([]string{"COMMAND", "DOCS"}, many...), long},
		{[]string{"CONFIG", "GET", string(make([]byte, manyBytes))}, long},
		{[]string{"CONFIG", "GET", "*"}, waits},
		{[]string{"DEL", "k"}, waits},
		{many, long},
		{[]string{"rl.check", "acme", "-", "-"}, waits},
		{[]string{"RL.PEEK", "acme", "-", "-"}, waits},
		{[]string{"RL.RESET", "acme"}, long},
		{[]string{"CLIENT", "LIST"}, long},
	} {
		if got := s.weigh(cmd(c.words...)); got != c.want {
			t.Errorf("%.40q weighs %d, want %d", c.words, got, c.want)
		}
	}
	step := func(want weight, words ...string) {
		t.Helper()
		if got := s.weigh(cmd("EXEC")); got != want {
			t.Errorf("before %q EXEC weighs %d, want %d", words, got, want)
		}
		s.Serve(t.Context(), [][][]byte{cmd(words...)}, nil)
	}
	step(light, "MULTI")
	step(light, "PING")
	step(light, "RL.PEEK", "acme", "-", "-")
	step(waits, "RL.RESET", "acme")
	step(long, "PING")
	if got := s.weigh(cmd("RL.RESET", "acme")); got != light {
		t.Errorf("a command that is kept weighs %d", got)
	}
	step(long, "DISCARD")
	step(light, "PING")
}
