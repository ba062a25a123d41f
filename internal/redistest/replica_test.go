package redistest

import (
	"strings"
	"testing"
)

func TestReplicaIsLinkedAndRefusesWrites(t *testing.T) {
	primary := Start(t, "--requirepass", "secret")
	replica := StartReplica(t, primary, "--requirepass", "other")
	primary.CLI(t, "SET", "color", "blue")
	if got := primary.CLI(t, "WAIT", "1", "5000"); got != "1" {
		t.Fatalf("WAIT = %q, want 1 replica", got)
	}
	if got := replica.CLI(t, "GET", "color"); got != "blue" {
		t.Errorf("GET on the replica = %q, want blue", got)
	}
	if got := replica.CLI(t, "SET", "color", "red"); !strings.HasPrefix(got, "READONLY") {
		t.Errorf("SET on the replica = %q, want READONLY", got)
	}
}
