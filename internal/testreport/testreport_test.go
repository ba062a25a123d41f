package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module has packages whose tests end in every way.
var module = map[string]string{
	"go.mod":         "module example.org/m\n\ngo 1.26\n",
	"good/a_test.go": `func TestA(t *testing.T) { t.Run("x", func(t *testing.T) {}); t.Run("y", func(t *testing.T) { t.Log("of y") }) }`,
	"bad/a_test.go": `
func TestParent(t *testing.T) {
	t.Run("it's [one]", func(t *testing.T) { t.Error("what went wrong") })
	t.Run("two", func(t *testing.T) { t.Log("of two") })
}
func TestFine(t *testing.T) { t.Log("of fine") }`,
	"lacking/a_test.go": `
func TestA(t *testing.T) { t.Skip("left out: tests of the moon (no rocket)") }
func TestB(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Skipf("left out: %s", "tests of the moon (no rocket)") }) }
func TestC(t *testing.T) {}`,
	"skipping/a_test.go": `func TestA(t *testing.T) { t.Skip("some day") }`,
	"panics/a_test.go":   `func TestA(t *testing.T) {}; func TestB(t *testing.T) { panic("at once") }`,
	"exits/a_test.go":    `import "os"; func TestA(t *testing.T) { os.Exit(3) }`,
	"main/a_test.go":     `import "os"; func TestA(t *testing.T) {}; func TestMain(m *testing.M) { m.Run(); println("something is left"); os.Exit(1) }`,
	"broken/a_test.go":   `func TestA(t *testing.T) { undefined() }`,
	"none/a.go":          ``,
}

// runModule runs the tests of packages of the module.
func runModule(t *testing.T, all bool, packages ...string) (r result, printed, logged string, err error) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range module {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".go") {
			text = strings.Replace("package p\n"+text, "import", `import "testing"; import`, 1)
			if strings.HasSuffix(name, "_test.go") && !strings.Contains(text, "import") {
				text = strings.Replace(text, "\n", "\nimport \"testing\"\n", 1)
			}
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(folder)
	var out, log strings.Builder
	p := &part{all: all, arguments: append([]string{"-count=1", "-vet=off"}, packages...), environ: os.Environ(), log: &log, screen: &screen{out: &out}}
	r, err = p.run()
	return r, out.String(), log.String(), err
}

var seconds = regexp.MustCompile(`\d+\.\d+s`)

// TestPassingTestsPrintNothing checks that passing packages print one line each.
func TestPassingTestsPrintNothing(t *testing.T) {
	r, printed, logged, err := runModule(t, false, "./good", "./none", "./lacking")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(seconds.ReplaceAllString(printed, "T")), "\n")
	slices.Sort(lines)
	want := []string{
		"?   \texample.org/m/none\t[no test files]",
		"ok  \texample.org/m/good\tT",
		"ok  \texample.org/m/lacking\tT\t(1 passed, 2 left out)",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("printed\n%s\nwant\n%s", printed, strings.Join(want, "\n"))
	}
	if !strings.Contains(logged, "of y") {
		t.Errorf("the log lacks what a test printed:\n%s", logged)
	}
	if got, want := r.form(), "left out: tests of the moon (no rocket): 2 tests\n3 passed, 0 failed\n"; got != want {
		t.Errorf("in the end\n%s\nwant\n%s", got, want)
	}
}

// TestFailuresAreNamed checks that each kind of failure prints the test and its output,
// and no passing test.
func TestFailuresAreNamed(t *testing.T) {
	for _, test := range []struct {
		pkg    string
		failed []string // tests, an empty one is the package's own
		prints []string
	}{
		{"bad", []string{"TestParent/it's_[one]"}, []string{"what went wrong", "--- FAIL: TestParent/it's_[one]"}},
		{"skipping", []string{"TestA"}, []string{"some day", "skipped, which counts as failed"}},
		{"panics", []string{"TestB"}, []string{"panic: at once"}},
		{"exits", []string{"TestA"}, []string{"TestA"}},
		{"main", []string{""}, []string{"something is left"}},
		{"broken", []string{""}, []string{"undefined: undefined"}},
	} {
		t.Run(test.pkg, func(t *testing.T) {
			r, printed, _, err := runModule(t, false, "./"+test.pkg)
			if !errors.Is(err, errFailed) {
				t.Errorf("the error is %v", err)
			}
			var failed []string
			for _, f := range r.Failed {
				if f.Package != "example.org/m/"+test.pkg {
					t.Errorf("%+v failed", f)
				}
				failed = append(failed, f.Test)
			}
			if !slices.Equal(failed, test.failed) {
				t.Errorf("%q failed, want %q", failed, test.failed)
			}
			for _, want := range append(test.prints, "FAIL\texample.org/m/"+test.pkg) {
				if !strings.Contains(printed, want) {
					t.Errorf("printed without %q\n%s", want, printed)
				}
			}
			for _, silent := range []string{"of two", "of fine", "=== RUN"} {
				if strings.Contains(printed, silent) {
					t.Errorf("printed %q\n%s", silent, printed)
				}
			}
		})
	}
}

// TestAllInsists checks that with LIMITGATE_ALL a test that is left out has failed.
func TestAllInsists(t *testing.T) {
	r, _, _, err := runModule(t, true, "./lacking")
	if !errors.Is(err, errFailed) || len(r.Failed) != 2 || r.Failed[1].Test != "TestB/sub" || len(r.LeftOut) != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestPackagesThatAreNot checks that a part fails if go test itself fails.
func TestPackagesThatAreNot(t *testing.T) {
	r, printed, _, err := runModule(t, false, "./nowhere")
	if !errors.Is(err, errFailed) || len(r.Failed) != 1 || r.Passed != 0 {
		t.Errorf("got %+v, %v\n%s", r, err, printed)
	}
}

// TestAgain checks that the command runs only the failed test, in a shell.
func TestAgain(t *testing.T) {
	t.Setenv("LIMITGATE_REDIS_BIN", "/opt/a folder/it's")
	r, _, _, err := runModule(t, false, "./good", "./bad")
	if !errors.Is(err, errFailed) || len(r.Failed) != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	command := r.Failed[0].Command
	if !strings.Contains(command, `LIMITGATE_REDIS_BIN='/opt/a folder/it'\''s' `) {
		t.Errorf("the environment is not in %s", command)
	}
	out, err := exec.Command("sh", "-c", strings.Replace(command, "go test", "go test -v", 1)).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "what went wrong") || strings.Contains(string(out), "of two") || strings.Contains(string(out), "good") {
		t.Errorf("%s\nprints, with %v\n%s", command, err, out)
	}
	if !strings.Contains(r.form(), "again:  "+command) {
		t.Errorf("in the end\n%s", r.form())
	}
}

// TestOtherModule checks that a module in another folder is tested, and that the command
// repeats its test from the same folder.
func TestOtherModule(t *testing.T) {
	_, _, _, err := runModule(t, false, "./good")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(module))
	var out, log strings.Builder
	p := &part{arguments: []string{"-C=" + filepath.Base(module), "./good", "./bad", "-vet=off"}, environ: os.Environ(), log: &log, screen: &screen{out: &out}}
	r, err := p.run()
	if !errors.Is(err, errFailed) || len(r.Failed) != 1 || r.Passed == 0 {
		t.Fatalf("got %+v, %v\n%s", r, err, &out)
	}
	again, err := exec.Command("sh", "-c", r.Failed[0].Command).CombinedOutput()
	if err == nil || !strings.Contains(string(again), "what went wrong") {
		t.Errorf("%s\nprints, with %v\n%s", r.Failed[0].Command, err, again)
	}
}

// TestClose checks that the parts of a folder become one result.
func TestClose(t *testing.T) {
	folder := t.TempDir()
	for name, r := range map[string]result{
		"a": {Passed: 2, LeftOut: map[string]int{"x": 1}},
		"b": {Passed: 3, LeftOut: map[string]int{"x": 2}, Failed: []failure{{"p", "TestA", "go test p"}}},
	} {
		if err := r.keep(folder, name); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := merge(folder)
	if err != nil {
		t.Fatal(err)
	}
	if want := "left out: x: 3 tests\n\nFAILED: p TestA\nagain:  go test p\n\n5 passed, 1 failed\n"; sum.form() != want {
		t.Errorf("got\n%s\nwant\n%s", sum.form(), want)
	}
}

// TestLiveLine checks that the live line stays below the printed lines, and disappears in
// the end.
func TestLiveLine(t *testing.T) {
	var out strings.Builder
	s := &screen{out: &out, terminal: true}
	s.show("running")
	s.print("ok\n")
	s.show("")
	s.print("end\n")
	if want := fmt.Sprintf("%srunning%sok\nrunning%send\n", clearLine, clearLine, clearLine); out.String() != want {
		t.Errorf("written %q, want %q", out.String(), want)
	}
	quiet := &screen{out: &out}
	out.Reset()
	quiet.show("running")
	if out.Len() != 0 {
		t.Errorf("a file gets %q", out.String())
	}
}
