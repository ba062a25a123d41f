package layering

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pathBounds has the most lines of Go and Lua that a reader of one check needs, with comments, and the
// files that they are in, from the words of a command to its reply. They are today's figures: lower
// them when a path gets shorter. The goals are 2,000 lines in 25 files, and 1,000 in 12 in memory. The
// connections have bounds of their own.
var pathBounds = map[string]struct{ lines, files int }{
	"a Redis Cluster":                       {1946, 22},
	"memory":                                {926, 12},
	"the fast path":                         {383, 11},
	"the connections":                       {421, 6},
	"a Redis Cluster, with the connections": {2367, 28},
}

// TestDecisionPath checks that the functions and types exist that docs/design.md names as the
// path of one check, and counts their lines.
func TestDecisionPath(t *testing.T) {
	content, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(content), "\n## One check")
	text, _, _ = strings.Cut(text, "\n## ")
	_, steps, _ := strings.Cut(text, "\nEvery check:")
	tables := pathTables(t, steps)
	if len(tables) != 6 {
		t.Fatalf("%d tables, want 6", len(tables))
	}
	for name, numbers := range map[string][]int{
		"a Redis Cluster": {0, 1, 2}, "memory": {0, 1, 3}, "the fast path": {0, 4}, "the connections": {5},
		"a Redis Cluster, with the connections": {0, 1, 2, 5},
	} {
		lines, files := 0, map[string]bool{}
		for _, n := range numbers {
			lines += countPath(t, tables[n], files)
		}
		t.Logf("%s: %d lines in %d files", name, lines, len(files))
		if b := pathBounds[name]; lines > b.lines || len(files) > b.files {
			t.Errorf("%s: %d lines in %d files to read, more than %d in %d", name, lines, len(files), b.lines, b.files)
		}
		if line := fmt.Sprintf("| %s | %d | %d |\n", name, lines, len(files)); !strings.Contains(text, line) {
			t.Errorf("docs/design.md lacks the line %s", line)
		}
	}
}

// countPath returns the lines of the functions and types of a table, and of its scripts, and adds
// their files to files.
func countPath(t *testing.T, table map[string][]string, files map[string]bool) (lines int) {
	for file, names := range table {
		files[file] = true
		if filepath.Ext(file) == ".lua" {
			lines += countLines(t, file)
			continue
		}
		lengths := declarationLengths(t, file)
		for _, n := range names {
			if lengths[n] == 0 {
				t.Errorf("%s has no %s", file, n)
			}
			lines += lengths[n]
		}
	}
	return lines
}

// pathTables returns the names of each table by their files.
func pathTables(t *testing.T, text string) (tables []map[string][]string) {
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		switch {
		case len(cells) == 1 || strings.HasPrefix(cells[1], "--"):
		case len(cells) != 5:
			t.Errorf("not a row of three cells: %s", line)
		case strings.TrimSpace(cells[1]) == "step":
			tables = append(tables, map[string][]string{})
		default:
			last, file := tables[len(tables)-1], strings.TrimSpace(cells[2])
			last[file] = append(last[file], strings.Fields(cells[3])...)
		}
	}
	return tables
}

// countLines returns the number of lines of a file of the module.
func countLines(t *testing.T, file string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(content, []byte("\n"))
}

// declarationLengths returns the number of lines of each function and type of a file, with
// its comment. A method has the name of its type and a dot in front.
func declarationLengths(t *testing.T, file string) map[string]int {
	t.Helper()
	positions, lengths := token.NewFileSet(), map[string]int{}
	f, err := parser.ParseFile(positions, filepath.Join("../..", file), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, doc *ast.CommentGroup, n ast.Node) {
		begin := n.Pos()
		if doc != nil {
			begin = doc.Pos()
		}
		lengths[name] = positions.Position(n.End()).Line - positions.Position(begin).Line + 1
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiverName(d.Recv.List[0].Type) + "." + name
			}
			add(name, d.Doc, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					add(s.Name.Name, d.Doc, d)
				}
			}
		}
	}
	return lengths
}

// receiverName returns the name of the type of a receiver.
func receiverName(e ast.Expr) string {
	if p, ok := e.(*ast.StarExpr); ok {
		e = p.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// TestDeclarationLengths checks the count on a function of this file.
func TestDeclarationLengths(t *testing.T) {
	lengths := declarationLengths(t, "internal/layering/decision_path_test.go")
	if lengths["receiverName"] != 10 {
		t.Errorf("got %v", slices.Sorted(maps.Keys(lengths)))
	}
}
