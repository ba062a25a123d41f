package layering

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listed is the output of go list for a package.
type listed struct {
	Dir            string
	ImportPath     string
	Imports        []string
	GoFiles        []string
	CgoFiles       []string
	IgnoredGoFiles []string // left out on this system
	TestGoFiles    []string
	XTestGoFiles   []string
}

// name is the path of the package within the repository.
func (p listed) name() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, modulePath), "/")
}

// ownImports are the packages of this repository that non-test code imports.
func (p listed) ownImports() []string {
	var own []string
	for _, path := range p.Imports {
		if name, found := strings.CutPrefix(path, modulePath+"/"); found {
			own = append(own, name)
		}
	}
	return own
}

// modules are the folders of the modules whose packages have rows. The module clients/go
// has none: its programs use no package of Limitgate.
var modules = []string{".", "bench", "deploy/checks"}

// listPackages returns every package of the modules.
func listPackages(t *testing.T) []listed {
	t.Helper()
	var packages []listed
	for _, folder := range modules {
		packages = append(packages, listModule(t, folder)...)
	}
	return packages
}

// listModule returns the packages of the module in a folder of the repository.
func listModule(t *testing.T, folder string) []listed {
	t.Helper()
	// The test needs no version control information, which git cannot give in a copy or
	// for another user.
	command := exec.Command("go", "list", "-buildvcs=false",
		"-json=Dir,ImportPath,Imports,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...")
	command.Dir = filepath.Join("..", "..", folder)
	var complaints strings.Builder
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		t.Fatalf("list packages: %v\n%s", err, &complaints)
	}
	packages, err := decodePackages(strings.NewReader(string(output)))
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

func decodePackages(stream io.Reader) ([]listed, error) {
	var packages []listed
	for decoder := json.NewDecoder(stream); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode package: %w", err)
		}
		packages = append(packages, p)
	}
}

// source is a parsed file.
type source struct {
	name   string // within the repository, for messages
	isTest bool
	*ast.File
	positions *token.FileSet
}

// at returns the position of a node in the form that editors understand.
func (s source) at(node ast.Node) string {
	return fmt.Sprintf("%s:%d", s.name, s.positions.Position(node.Pos()).Line)
}

// sources parses all files of a package, those for other systems too.
func (p listed) sources(t *testing.T) []source {
	t.Helper()
	var sources []source
	for _, file := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles) {
		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, filepath.Join(p.Dir, file), nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("parse source: %v", err)
		}
		sources = append(sources, source{
			name:      p.name() + "/" + file,
			isTest:    strings.HasSuffix(file, "_test.go"),
			File:      parsed,
			positions: positions,
		})
	}
	return sources
}

// parseText parses the text of a test as a file.
func parseText(t *testing.T, name, text string) source {
	t.Helper()
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("parse source: %v", err)
	}
	return source{name: name, isTest: strings.HasSuffix(name, "_test.go"), File: parsed, positions: positions}
}
