package tablemodel

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/controlplane/table"
)

// kind is the kind of a step of a history.
type kind int

const (
	push kind = iota // of one item
	pushMany
	byHand     // without an actor
	byHandOdd  // with a version of any size
	deleteHard // without a tombstone
	putBack    // from a backup
	backUp
	remake  // the table, from other limits or a backup
	forge   // an item, for one proxy
	forgery // of a digest, for all
	faults  // of the network
	awsAway
	startPlaneStep
	endPlane
	killPlane
	startProxy
	endProxy
	otherSnapshot
	loseSubscription
	loseQueue
	slowReadings
	lookup // of a tenant by itself
	pass   // time
	kinds
)

var kindNames = [kinds]string{
	"push", "pushMany", "byHand", "byHandOdd", "deleteHard", "putBack", "backUp", "remake", "forge", "forgery", "faults", "awsAway",
	"startPlane", "endPlane", "killPlane", "startProxy", "endProxy", "otherSnapshot", "loseSubscription", "loseQueue", "slowReadings", "lookup", "pass",
}

// often has the steps that are drawn more often than others.
var often = []kind{push, push, push, push, pushMany, byHand, byHandOdd, deleteHard, putBack, forge, forge, slowReadings, lookup, pass, pass, pass, pass}

// step is one step of a history: its kind, the index of its target, and a variant.
type step struct {
	kind      kind
	what, how int
}

func (s step) String() string { return fmt.Sprintf("%s %d %d", kindNames[s.kind], s.what, s.how) }

var (
	tenants = []string{"t0", "t1", "t2", "t3"}
	keys    = []string{
		"SHARED", "PLAN#p0", "PLAN#p1", "PLAN#p2", "TENANT#t0", "TENANT#t1", "TENANT#t2", "TENANT#t3",
	}
	bodies = map[string][]string{
		"SHARED": {`{"version":1,"default_plan":"p0"}`, `{"version":1,"default_plan":"p0","shared":[{"id":"ip","by":["ip"],"rate":"1/s"}]}`, `{"version":1}`},
		"PLAN":   {`[{"id":"a","by":["tenant"],"rate":"1/s"}]`, `[{"id":"a","by":["tenant"],"rate":"2/s"},{"id":"b","by":["tenant","op"],"rate":"2/s"}]`, `[]`},
		"TENANT": {`{"plan":"p0"}`, `{"plan":"p1"}`, `{"plan":"p2","overrides":{}}`, ``},
	}
	versions = []int64{1, 2, 3, 5, 9, 100, table.MaxVersion - 1, table.MaxVersion}
)

// bodyOf returns one of the bodies of a key; a plan and the shared limits are seldom
// deleted.
func bodyOf(key string, how int) string {
	kind, _, _ := strings.Cut(key, "#")
	if how%23 == 7 {
		return ""
	}
	if how%29 == 3 {
		return `{"plan":7}` // no item can use it
	}
	return bodies[kind][how%len(bodies[kind])]
}

// others returns the items of another table.
func others(how int) map[string]table.Item {
	items := map[string]table.Item{}
	for i, key := range keys {
		if i > 3 && (how>>i)%3 == 0 {
			continue
		}
		kind, _, _ := strings.Cut(key, "#")
		body := bodies[kind][(how>>i)%len(bodies[kind])]
		items[key] = versioned(key, versions[(how>>i)%4], body)
	}
	return items
}

// drawHistory draws a history. It is drawn before it runs, so that rapid can shrink it.
func drawHistory(rt *rapid.T) []step {
	one := rapid.Custom(func(t *rapid.T) step {
		s := step{what: rapid.IntRange(0, 1<<10).Draw(t, "what"), how: rapid.IntRange(0, 1<<16).Draw(t, "how")}
		if rapid.Bool().Draw(t, "often") {
			s.kind = rapid.SampledFrom(often).Draw(t, "kind")
		} else {
			s.kind = kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind"))
		}
		return s
	})
	n := rapid.SampledFrom([]int{60, 40, 30, 20, 10, 5, 2}).Draw(rt, "steps")
	return rapid.SliceOfN(one, n, n).Draw(rt, "history")
}
