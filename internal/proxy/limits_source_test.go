package proxy

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// limitsOfRate is a limits file with one limit.
func limitsOfRate(rate string) string {
	return "version: 1\ndefault_plan: free\nplans:\n  free:\n    - {id: tenant, by: [tenant], rate: " + rate + "}\n"
}

// TestReload: the answer and the line of a reload report limits that are not in use, and why.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(limitsOfRate("10/s"))
	var out syncbuffer.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	source, err := openFile(&config.Settings{Limits: path, LimitsCanary: 2000, CanaryThreshold: 100}, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := source.Set().Version
	for _, row := range []struct {
		name, content string
		abort         bool
		err, line     string // parts of the error and of the line
	}{
		{"changed", limitsOfRate("20/s"), false, "", "tenant 10/s burst 10 -> 20/s burst 20"},
		{"aborted", limitsOfRate("20/s"), true, "was taken back, and waits for another file: it denies; change the file, or restore that of version " + first + ", which is in use", ""},
		{"restored", limitsOfRate("10/s"), false, "", `changes="none, and the limits have no error any more"`},
		{"bad", limitsOfRate("0/s"), false, "rate of zero", ""},
		{"good again", limitsOfRate("10/s"), false, "", `changes="none, and the limits have no error any more"`},
	} {
		if row.abort {
			if err := source.TakeBack("", "it denies"); err != nil {
				t.Fatal(err)
			}
		}
		write(row.content)
		logged := len(out.String())
		err := reload(source, byClient, log)
		if err == nil != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %v", row.name, err)
		}
		if line := out.String()[logged:]; (line == "") != (row.line == "") || !strings.Contains(line, row.line) {
			t.Errorf("%s: logged %q", row.name, line)
		}
	}
}
