package layering

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// testTypes are the types of package testing that can skip a test.
var testTypes = []string{"T", "B", "F", "TB"}

// leavesOut is the one file that may skip tests: those that need an emulator of AWS,
// which make test counts.
const leavesOut = "internal/leftout/leftout.go"

func TestNoTestIsSkipped(t *testing.T) {
	for _, p := range listPackages(t) {
		// All files, not only tests: a harness could skip a test too.
		for _, s := range p.sources(t) {
			if s.name == leavesOut {
				continue
			}
			for _, problem := range checkSkips(s) {
				t.Error(problem)
			}
		}
	}
}

// checkSkips returns the places where a file skips a test. It recognizes a test by the
// type of the parameter, because rapid's T has a Skip too, which only asks for another
// input.
func checkSkips(s source) []string {
	name := importName(s, "testing")
	if name == "" {
		return nil
	}
	finder := &skipFinder{source: s, testing: name}
	ast.Walk(scope{finder: finder}, s.File)
	return finder.problems
}

// skipFinder collects the skips of one file.
type skipFinder struct {
	source
	testing  string // the name under which the file imports package testing
	problems []string
}

// scope visits the inside of a function, where the parameters have their types.
type scope struct {
	finder *skipFinder
	tests  map[string]bool
}

// Visit implements ast.Visitor.
func (s scope) Visit(node ast.Node) ast.Visitor {
	switch node := node.(type) {
	case *ast.FuncDecl:
		return s.inside(node.Type)
	case *ast.FuncLit:
		return s.inside(node.Type)
	case *ast.SelectorExpr:
		ident, ok := node.X.(*ast.Ident)
		if ok && s.tests[ident.Name] && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, node.Sel.Name) {
			s.finder.problems = append(s.finder.problems,
				s.finder.at(node)+" skips a test: a skipped test passes for ever")
		}
	}
	return s
}

// inside is the scope of a function within this one.
func (s scope) inside(function *ast.FuncType) scope {
	tests := make(map[string]bool)
	maps.Copy(tests, s.tests)
	for _, field := range function.Params.List {
		for _, name := range field.Names {
			tests[name.Name] = s.finder.isTestType(field.Type)
		}
	}
	return scope{finder: s.finder, tests: tests}
}

func (f *skipFinder) isTestType(kind ast.Expr) bool {
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	selector, ok := kind.(*ast.SelectorExpr)
	return ok && isIdent(selector.X, f.testing) && slices.Contains(testTypes, selector.Sel.Name)
}

func TestCheckSkipsReportsThem(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want bool
	}{
		"none":             {`import "testing"; func TestA(t *testing.T) { t.Log() }`, false},
		"skip":             {`import "testing"; func TestA(t *testing.T) { t.Skip("later") }`, true},
		"skip now":         {`import "testing"; func BenchmarkA(b *testing.B) { b.SkipNow() }`, true},
		"on their behalf":  {`import "testing"; func need(tb testing.TB) { tb.Skipf("no %s", "redis") }`, true},
		"in a subtest":     {`import "testing"; var f = func(sub *testing.T) { sub.Skip() }`, true},
		"rapid":            {`import ("testing"; "pgregory.net/rapid"); func TestA(t *testing.T) { rapid.Check(t, func(t *rapid.T) { t.Skip() }) }`, false},
		"another's method": {`import "testing"; func TestA(t *testing.T) { lines.Skip() }`, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkSkips(parseText(t, "a_test.go", "package a; "+test.text))
			if (len(got) > 0) != test.want {
				t.Errorf("got %s, want a report = %v", strings.Join(got, "\n"), test.want)
			}
		})
	}
}
