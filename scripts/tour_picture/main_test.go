package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"testing"
)

// TestPicture checks that docs/tour.svg is of the present docs/tour.md, and is XML.
func TestPicture(t *testing.T) {
	page, err := os.ReadFile("../../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	steps := stepsOf(string(page))
	if len(steps) != 12 {
		t.Errorf("the tour has %d steps", len(steps))
	}
	for _, s := range steps {
		if len(s.lines) == 0 {
			t.Errorf("%s\nhas no command", s.sentence)
		}
	}
	have, err := os.ReadFile("../../docs/tour.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, picture(steps)) {
		t.Error("docs/tour.svg is not of this docs/tour.md: make tour-picture")
	}
	for d := xml.NewDecoder(bytes.NewReader(have)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
