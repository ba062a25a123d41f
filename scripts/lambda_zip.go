//go:build ignore

// Lambda_zip packs a program for AWS Lambda: an archive of one executable file named
// bootstrap. The same program always makes the same archive.
//
//	go run scripts/lambda_zip.go PROGRAM ARCHIVE
package main

import (
	"archive/zip"
	"compress/flate"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: lambda_zip PROGRAM ARCHIVE")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "lambda_zip:", err)
		os.Exit(1)
	}
}

// pack writes the archive and prints both sizes.
func pack(program, archive string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	if err := write(out, content); err != nil {
		_ = out.Close()
		return err
	}
	packed, err := out.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	fmt.Printf("%s: %.1f MB, unpacked %.1f MB\n", archive, float64(packed)/1e6, float64(len(content))/1e6)
	return nil
}

func write(out io.Writer, content []byte) error {
	w := zip.NewWriter(out)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestCompression) })
	// The first instant that an archive can have, not the one at which it was built.
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	header.SetMode(0o755)
	f, err := w.CreateHeader(header)
	if err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		return err
	}
	return w.Close()
}
