package limitimport

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

var update = flag.Bool("update", false, "write the expected limits files and remarks")

// readers are the importers, by the ending of the test data.
var readers = map[string]func([]byte) (Result, error){".conf": Nginx, ".yaml": Kong, ".json": Rules, ".rules": Rules}

// TestImport compares the limits file and the remarks of each configuration in testdata with those
// beside it, and checks that the limits file can be used or says why not.
func TestImport(t *testing.T) {
	tested := 0
	eachConfiguration(t, func(path string, r Result, err error) {
		tested++
		expect(t, path+".want", describe(r, err))
	})
	if tested < 6 {
		t.Errorf("only %d configurations are tested", tested)
	}
}

// eachConfiguration calls do with the import of each configuration in testdata.
func eachConfiguration(t *testing.T, do func(path string, r Result, err error)) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		read := readers[filepath.Ext(path)]
		if read == nil {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := read(content)
		do(path, r, err)
	}
}

// expect compares a description of an import with that in a file.
func expect(t *testing.T, want, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if expected, err := os.ReadFile(want); err != nil || string(expected) != got {
		t.Errorf("%v, got\n%s\nwant %s\n%s", err, got, want, expected)
	}
}

// describe returns the limits file, the remarks and the errors of an import.
func describe(r Result, err error) string {
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var b strings.Builder
	b.Write(r.File)
	for _, remark := range r.Remarks {
		file := ""
		if remark.File != "" {
			file = filepath.Base(remark.File) + " "
		}
		fmt.Fprintf(&b, "# %sline %d: %s\n", file, remark.Line, remark.Text)
	}
	if _, warnings, err := config.ParseLimits("limits.yaml", r.File, limit.CompileOptions{IPMaxTTL: 3600e6}); err != nil {
		fmt.Fprintf(&b, "# %s\n", err)
	} else {
		for _, w := range warnings {
			if !w.Redis && !w.Note {
				fmt.Fprintf(&b, "# %s\n", w.Format("limits.yaml"))
			}
		}
	}
	return b.String()
}

// FuzzNginx checks that no configuration makes the import fail otherwise than by an error, and
// that limits files are YAML.
func FuzzNginx(f *testing.F) { fuzz(f, "testdata/*.conf", Nginx) }

// FuzzKong checks the same of Kong's.
func FuzzKong(f *testing.F) { fuzz(f, "testdata/*.yaml", Kong) }

// FuzzRules reads any list of rules.
func FuzzRules(f *testing.F) { fuzz(f, "testdata/*.[jr]*[ns]", Rules) }

func fuzz(f *testing.F, seeds string, read func([]byte) (Result, error)) {
	paths, _ := filepath.Glob(seeds)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := read(content)
		if err != nil {
			return
		}
		if _, err := config.SplitLimits("limits.yaml", r.File); err != nil {
			t.Errorf("%v:\n%s", err, r.File)
		}
		for _, remark := range r.Remarks {
			if strings.ContainsFunc(remark.Text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
				t.Errorf("a remark has control characters: %q", remark.Text)
			}
		}
	})
}
