package commands_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// TestLogLevel checks that CONFIG SET changes the level of the log, in our words and those of Redis,
// and that CONFIG GET has the present one.
func TestLogLevel(t *testing.T) {
	level := new(slog.LevelVar)
	h := commands.NewHandler(commands.Options{Limiter: limiter.New(limiter.Options{Store: memory.New(memory.Options{})}, &limit.Set{}), LogLevel: level})
	ask := asking(t, h)
	for _, step := range []struct {
		word string
		want slog.Level
	}{{"debug", slog.LevelDebug}, {"ERROR", slog.LevelError}, {"notice", slog.LevelInfo}, {"warning", slog.LevelWarn}} {
		if got := ask("CONFIG", "SET", "LogLevel", step.word); got != "+OK\r\n" || level.Level() != step.want {
			t.Errorf("%s: %q, level %s", step.word, got, level)
		}
	}
	if got := ask("CONFIG", "GET", "loglevel"); got != "*2\r\n$8\r\nloglevel\r\n$4\r\nwarn\r\n" {
		t.Errorf("CONFIG GET: %q", got)
	}
	if got := ask("CONFIG", "SET", "loglevel", "loud"); !strings.Contains(got, "argument must be one of the following: debug, info, warn, error") {
		t.Errorf("a level that does not exist: %q", got)
	}
	if got := ask("CONFIG", "SET", "timeout", "1"); !strings.HasPrefix(got, "-ERR") || level.Level() != slog.LevelWarn {
		t.Errorf("another setting: %q", got)
	}
}
