package main

import (
	"encoding/json"
	"time"
)

// event is a line of go test -json. Go doc cmd/test2json and go help buildjson have its form.
type event struct {
	Time        time.Time
	Action      string
	Package     string
	Test        string
	Elapsed     float64 // seconds
	Output      string
	ImportPath  string // of what is built
	FailedBuild string // the ImportPath of what could not be built
}

// parseEvent reads a line. A line that is no event is output of no package: the go command
// writes it by itself.
func parseEvent(line []byte) event {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		return event{Action: "output", Output: string(line)}
	}
	return e
}
