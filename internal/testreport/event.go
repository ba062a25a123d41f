package main

import (
	"encoding/json"
	"time"
)

// event is a line of go test -json. Go doc cmd/test2json and go help buildjson describe
// it.
type event struct {
	Time        time.Time
	Action      string
	Package     string
	Test        string
	Elapsed     float64 // seconds
	Output      string
	ImportPath  string // of the built package
	FailedBuild string // the ImportPath of a package that failed to build
}

// parseEvent parses a line. A line that is no event is output of the go command itself,
// of no package.
func parseEvent(line []byte) event {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		return event{Action: "output", Output: string(line)}
	}
	return e
}
