package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// suffix ends the names of the files with results.
const suffix = ".json"

// keep writes the result of a part.
func (r result) keep(folder, part string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, part+suffix), text, 0o644)
}

// merge returns the result of all parts that have one in a folder.
func merge(folder string) (result, error) {
	sum := result{LeftOut: map[string]int{}}
	files, err := filepath.Glob(filepath.Join(folder, "*"+suffix))
	if err != nil {
		return sum, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return sum, err
		}
		var r result
		if err := json.Unmarshal(text, &r); err != nil {
			return sum, fmt.Errorf("read %s: %w", file, err)
		}
		sum.Passed += r.Passed
		sum.Failed = append(sum.Failed, r.Failed...)
		for reason, n := range r.LeftOut {
			sum.LeftOut[reason] += n
		}
	}
	return sum, nil
}

// form returns the text of a result.
func (r result) form() string {
	var text strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(r.LeftOut)) {
		fmt.Fprintf(&text, "left out: %s: %d tests\n", reason, r.LeftOut[reason])
	}
	for _, f := range r.Failed {
		fmt.Fprintf(&text, "\nFAILED: %s\nagain:  %s\n", strings.TrimSpace(f.Package+" "+f.Test), f.Command)
	}
	if len(r.Failed) > 0 {
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "%d passed, %d failed\n", r.Passed, len(r.Failed))
	return text.String()
}
