package main

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// result is the outcome of the tests of a part. The summary needs it.
type result struct {
	Passed  int
	Failed  []failure
	LeftOut map[string]int // how many tests, by the reason
}

// failure is a test that failed, or a package that failed without one.
type failure struct {
	Package, Test string
	Command       string // runs it again
}

// tally follows the events of a part. Packages are tested at the same time.
type tally struct {
	all      bool // no test may be left out
	packages map[string]*packageTests
	builds   map[string]string // output of the compiler, by package
	result   result
}

func newTally(all bool) *tally {
	return &tally{all: all, packages: map[string]*packageTests{}, builds: map[string]string{}, result: result{LeftOut: map[string]int{}}}
}

// packageTests are the tests of a package that has not finished.
type packageTests struct {
	output strings.Builder // of the package itself
	order  []string        // the names of all tests, in the order of their start
	tests  map[string]*trial
	passed int
	left   int // out
}

// trial is a test that has not passed.
type trial struct {
	began  time.Time
	output strings.Builder
	parent bool // of a test that has begun
	failed bool
	ended  bool
}

// packageResult is the outcome of a package.
type packageResult struct {
	name    string
	state   string // pass, fail or skip, which means that it has no tests
	seconds float64
	passed  int
	leftOut int
	failed  []string // tests
	output  string   // of failed tests
}

// add counts an event. It returns the result of the package if the event is its last.
func (t *tally) add(e event) *packageResult {
	if e.Package == "" {
		t.builds[e.ImportPath] += e.Output
		return nil
	}
	p := t.packages[e.Package]
	if p == nil {
		p = &packageTests{tests: map[string]*trial{}}
		t.packages[e.Package] = p
	}
	if e.Test != "" {
		t.addTest(p, e)
		return nil
	}
	switch e.Action {
	case "output":
		p.output.WriteString(e.Output)
	case "pass", "fail", "skip":
		delete(t.packages, e.Package)
		return t.end(p, e)
	}
	return nil
}

// addTest counts an event of a test.
func (t *tally) addTest(p *packageTests, e event) {
	if e.Action == "run" {
		p.begin(e)
	}
	test := p.tests[e.Test]
	if test == nil {
		return
	}
	switch e.Action {
	case "output":
		test.output.WriteString(e.Output)
	case "pass":
		delete(p.tests, e.Test)
		if !test.parent {
			p.passed++
		}
	case "fail":
		test.failed, test.ended = true, true
	case "skip":
		reason := leftOutFor(test.output.String())
		if reason == "" || t.all {
			test.output.WriteString("    skipped, which counts as failed\n")
			test.failed, test.ended = true, true
			return
		}
		delete(p.tests, e.Test)
		p.left++
		t.result.LeftOut[reason]++
	}
}

func (p *packageTests) begin(e event) {
	p.order = append(p.order, e.Test)
	p.tests[e.Test] = &trial{began: e.Time}
	if i := strings.LastIndexByte(e.Test, '/'); i > 0 && p.tests[e.Test[:i]] != nil {
		p.tests[e.Test[:i]].parent = true
	}
}

// leftOutFor returns the reason why a test was left out, from its output.
func leftOutFor(output string) string {
	for line := range strings.Lines(output) {
		if _, reason, found := strings.Cut(line, ": left out: "); found {
			return strings.TrimSpace(reason)
		}
	}
	return ""
}

// end returns the result of a package, and counts it.
func (t *tally) end(p *packageTests, e event) *packageResult {
	r := &packageResult{name: e.Package, state: e.Action, seconds: e.Elapsed, passed: p.passed, leftOut: p.left}
	t.result.Passed += p.passed
	var output strings.Builder
	for _, name := range p.order {
		test := p.tests[name]
		if test == nil {
			continue
		}
		if !test.ended {
			test.output.WriteString("    " + name + " has not ended\n")
		}
		output.WriteString(quiet(test.output.String()))
		if !p.failedBelow(name) {
			r.failed = append(r.failed, name)
			t.result.Failed = append(t.result.Failed, failure{Package: e.Package, Test: name})
		}
	}
	if len(r.failed) > 0 {
		r.state = "fail"
	}
	if r.state == "fail" {
		r.output = t.builds[e.FailedBuild] + output.String() + quiet(p.output.String())
		if len(r.failed) == 0 {
			t.result.Failed = append(t.result.Failed, failure{Package: e.Package})
		}
	}
	return r
}

// failedBelow reports whether a subtest is among the tests that have not passed.
func (p *packageTests) failedBelow(parent string) bool {
	for name := range p.tests {
		if strings.HasPrefix(name, parent+"/") {
			return true
		}
	}
	return false
}

// quiet returns output without the framing lines of go test.
func quiet(output string) string {
	var kept strings.Builder
	for line := range strings.Lines(output) {
		if !isFrame(line) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func isFrame(line string) bool {
	trimmed := strings.TrimLeft(line, " ")
	for _, prefix := range []string{"=== ", "--- PASS", "ok  \t", "FAIL\t", "exit status ", "PASS\n", "FAIL\n"} {
		if strings.HasPrefix(trimmed, prefix) {
			return true
		}
	}
	return false
}

// oldest returns the names of the packages under test, and the test that has run longest
// with its start time.
func (t *tally) oldest() (packages []string, test string, began time.Time) {
	for _, pkg := range slices.Sorted(maps.Keys(t.packages)) {
		packages = append(packages, pkg)
		for name, is := range t.packages[pkg].tests {
			if !is.ended && !is.parent && (test == "" || is.began.Before(began)) {
				test, began = name, is.began
			}
		}
	}
	return packages, test, began
}
