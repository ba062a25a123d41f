package integration

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestLambdaArchive: the archive to deploy contains the program under the name that AWS
// starts, with permission to execute it, and is reproducible.
func TestLambdaArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, pack := filepath.Join(dir, "program"), filepath.Join(dir, "pack")
	want := bytes.Repeat([]byte("#!/bin/sh\n"), 1000)
	if err := os.WriteFile(program, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", pack, "../scripts/lambda_zip.go").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	var archives [2][]byte
	for i := range archives {
		path := filepath.Join(dir, "lambda.zip")
		if out, err := exec.Command(pack, program, path).CombinedOutput(); err != nil {
			t.Fatalf("pack: %v\n%s", err, out)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = content
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("it is another archive each time")
	}
	r, err := zip.NewReader(bytes.NewReader(archives[0]), int64(len(archives[0])))
	if err != nil || len(r.File) != 1 || r.File[0].Name != "bootstrap" || r.File[0].Mode() != 0o755 {
		t.Fatalf("the archive: %v, %+v", err, r.File)
	}
	f, err := r.File[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(packed, want) {
		t.Error("it has another program")
	}
}
