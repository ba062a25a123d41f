package judge

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// keptFolder holds histories with former wrong answers. Its files are renamed by hand
// after the error that they showed.
const keptFolder = "testdata/kept"

// keep writes a history to keptFolder and returns the file's name.
func keep(t *testing.T, text string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text))
	name := filepath.Join(keptFolder, fmt.Sprintf("%08x.txt", sum.Sum32()))
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
	return name
}

// TestKept runs the histories in keptFolder again, on all stores in all ways.
func TestKept(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(keptFolder, "*.txt"))
	if err != nil || len(names) == 0 {
		t.Fatalf("find kept histories: %d of them, %v", len(names), err)
	}
	l := newLab(t)
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			h, err := parseHistory(string(text))
			if err != nil {
				t.Fatal(err)
			}
			want, all, wrong := truth(h), l.every(), 0
			for _, r := range all {
				m := compare(h, want, r.answers(h), r.engine.way)
				if m == nil {
					continue
				}
				if wrong++; wrong == 1 {
					t.Errorf("%s: step %d, %s: %s", r, m.step, h.steps[m.step].String(), m.text)
				}
			}
			if wrong > 0 {
				t.Errorf("%d of %d ways to ask answer wrongly", wrong, len(all))
			}
		})
	}
}

// TestHistoryText checks that the text of a history is complete.
func TestHistoryText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		h, err := drawHistory(r, 100)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseHistory(h.String())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := again.String(), h.String(); got != want {
			t.Fatalf("read and written again:\n%s\nwant\n%s", got, want)
		}
	}
}
