package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestNoteWait: a call of AWS that takes long is noted once, and one that does not is not.
func TestNoteWait(t *testing.T) {
	for took, want := range map[time.Duration]int{quietWait - 1: 0, quietWait + 1: 1, time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			end := noteWait(&out, "dynamodb://limits")
			time.Sleep(took)
			end()
			time.Sleep(time.Minute)
			if n := strings.Count(out.String(), "limitgate: dynamodb://limits: the calls of AWS take longer than 5s"); n != want {
				t.Errorf("after %v: %d notes, want %d: %q", took, n, want, out.String())
			}
		})
	}
}
