package layering

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// outsideReaders are the functions by which a package would read settings itself, instead
// of receiving them.
var outsideReaders = []string{
	"Getenv", "LookupEnv", "Environ", "ExpandEnv", "ReadFile", "ReadDir", "Open", "OpenFile", "OpenRoot", "DirFS",
}

func TestPackagesBelowConfigReadNoFlagFileOrEnvironment(t *testing.T) {
	for _, p := range listPackages(t) {
		if !table[p.name()].settled {
			continue
		}
		for _, s := range p.sources(t) {
			for _, problem := range checkSettled(s) {
				t.Error(problem)
			}
		}
	}
}

// checkSettled returns the places where non-test code reads the outside world.
func checkSettled(s source) []string {
	if s.isTest {
		return nil
	}
	var problems []string
	if importName(s, "flag") != "" {
		problems = append(problems, s.name+" imports flag: flags are read by the command and by config")
	}
	osName := importName(s, "os")
	if osName == "." {
		return append(problems, s.name+" imports os without its name, which hides what it reads")
	}
	ast.Inspect(s.File, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || osName == "" || !isIdent(selector.X, osName) || !slices.Contains(outsideReaders, selector.Sel.Name) {
			return true
		}
		problems = append(problems, s.at(selector)+" uses os."+selector.Sel.Name+
			": files and environment are read by the command and by config")
		return true
	})
	return problems
}

// importName returns the name under which a file imports a package of the standard
// library, or nothing if it doesn't.
func importName(s source, path string) string {
	for _, spec := range s.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err != nil || imported != path {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}

func isIdent(expression ast.Expr, name string) bool {
	ident, ok := expression.(*ast.Ident)
	return ok && ident.Name == name
}

func TestCheckSettledReportsWhatIsRead(t *testing.T) {
	for name, test := range map[string]struct {
		file, text, want string
	}{
		"nothing":      {"a.go", `package a; import "os"; var _ = os.Getpid()`, ""},
		"environment":  {"a.go", `package a; import "os"; var _ = os.Getenv("HOME")`, "a.go:1 uses os.Getenv"},
		"file":         {"a.go", "package a\nimport \"os\"\nvar open = os.Open\n", "a.go:3 uses os.Open"},
		"other name":   {"a.go", `package a; import sys "os"; var _, _ = sys.ReadFile("x")`, "a.go:1 uses os.ReadFile"},
		"no name":      {"a.go", `package a; import . "os"; var _ = Getenv("HOME")`, "a.go imports os without its name"},
		"another os":   {"a.go", `package a; var os struct{ Getenv string }; var _ = os.Getenv`, ""},
		"flag":         {"a.go", `package a; import "flag"; var _ = flag.Parse`, "a.go imports flag"},
		"in its tests": {"a_test.go", `package a; import "os"; var _ = os.Getenv("HOME")`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(checkSettled(parseText(t, test.file, test.text)), "\n")
			if (test.want == "") != (got == "") || !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
