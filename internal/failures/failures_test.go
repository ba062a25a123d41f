package failures

import (
	"testing"
	"time"
)

func TestLimit(t *testing.T) {
	l, now := New[int](), time.Now()
	for i := range Most {
		if l.Exceeded(1, now) {
			t.Fatalf("exceeded after %d failures", i)
		}
		l.Add(1, now)
	}
	if !l.Exceeded(1, now) || l.Exceeded(2, now) {
		t.Error("the limit is not of the client that failed")
	}
	if l.Exceeded(1, now.Add(Period/Most)) {
		t.Error("exceeded when a failure is allowed again")
	}
	for i := range 3 * maxClients {
		l.Add(i, now)
	}
	if n := l.buckets.Len(); n != maxClients {
		t.Errorf("%d clients are kept", n)
	}
}
