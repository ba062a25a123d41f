package layering

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

// requirements returns the version of each module that the go.mod of a folder requires.
func requirements(t *testing.T, folder string) map[string]string {
	t.Helper()
	command := exec.Command("go", "mod", "edit", "-json")
	command.Dir = filepath.Join("..", "..", folder)
	output, err := command.Output()
	if err != nil {
		t.Fatalf("read go.mod of %s: %v", folder, err)
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(output, &file); err != nil {
		t.Fatalf("decode go.mod of %s: %v", folder, err)
	}
	versions := make(map[string]string)
	for _, r := range file.Require {
		versions[r.Path] = r.Version
	}
	return versions
}

// TestModulesRequireTheSameVersions: the benchmark drives the proxy with the code that the
// proxy's own tests use.
func TestModulesRequireTheSameVersions(t *testing.T) {
	root := requirements(t, ".")
	shared := 0
	for path, version := range requirements(t, "bench") {
		want, found := root[path]
		if !found {
			continue
		}
		shared++
		if version != want {
			t.Errorf("bench requires %s %s, the root %s", path, version, want)
		}
	}
	if shared == 0 {
		t.Error("the modules share no requirement")
	}
}
