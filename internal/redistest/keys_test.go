package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// recorder records the failures that a test provokes on purpose.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestKeysThatAllExpirePass(t *testing.T) {
	node := Start(t)
	node.CLI(t, "EVAL", "for i = 1, 3000 do redis.call('SET', 'k' .. i, 1, 'PX', 60000) end", "0")
	if got := AssertAllKeysExpire(t, node); got != 3000 {
		t.Errorf("looked at %d keys, want 3000", got)
	}
}

func TestKeyThatNeverExpiresIsNamed(t *testing.T) {
	node := Start(t)
	replica := StartReplica(t, node)
	node.CLI(t, "SET", "mortal", "1", "PX", "60000")
	node.CLI(t, "HSET", "eternal key", "field", "1")
	record := &recorder{TB: t}
	if got := AssertAllKeysExpire(record, node, replica); got != 2 {
		t.Errorf("looked at %d keys, want 2", got)
	}
	want := "1 of 2 keys on " + node.Addr + ` never expire: "eternal key"`
	if len(record.errors) != 1 || record.errors[0] != want {
		t.Errorf("failures = %q, want %q", record.errors, want)
	}
}

func TestManyEternalKeysAreCountedAndSomeNamed(t *testing.T) {
	node := Start(t)
	node.CLI(t, "EVAL", "for i = 1, 2500 do redis.call('SET', 'k' .. i, 1) end", "0")
	record := &recorder{TB: t}
	AssertAllKeysExpire(record, node)
	if len(record.errors) != 1 || !strings.HasPrefix(record.errors[0], strconv.Itoa(2500)+" of 2500") ||
		strings.Count(record.errors[0], `"k`) != namedKeys {
		t.Errorf("failures = %q, want 2500 counted and %d named", record.errors, namedKeys)
	}
}
