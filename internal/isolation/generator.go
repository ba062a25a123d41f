package isolation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Tenants are the users, their passwords and their tenants.
var Tenants = []string{"alpha", "beta"}

// Users is the file of the users.
const Users = `user alpha on #8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8 ~alpha ~alpha:* +@all
user beta on #f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753 ~beta ~beta:* +@all
`

// uncomparable are the commands whose replies depend on the process as a whole.
var uncomparable = []string{"info", "memory"}

// Comparable returns the part of a reply that must not depend on other users.
func Comparable(name string, reply []byte) []byte {
	switch {
	case slices.Contains(uncomparable, name):
		return nil
	case name == "rl.reset" && reply[0] == ':':
		// The number counts buckets that are full again, until the store sweeps them away.
		return reply[:1]
	}
	return reply
}

// Generator makes commands. It is safe for concurrent use.
type Generator struct {
	// Names are the names of all commands.
	Names []string
	// Period is that of the limits that come with a command, in seconds.
	Period string
}

// Command returns a command of a user: any command, with words that fit it, and the names, keys
// and ids of both tenants.
func (g *Generator) Command(r *rand.Rand, user int) []string {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	tenant := pick("alpha", "beta", "-", "{alpha}", "{beta}", "alpha}b", "beta\x00", "alphA", "αlpha", "")
	if r.IntN(2) == 0 {
		tenant = Tenants[user]
	}
	id := fmt.Sprint("id", r.IntN(20))
	ip := fmt.Sprintf("10.%d.0.%d", user, r.IntN(5)) // a limit by address is of all tenants
	subject := []string{tenant, pick("-", "GET /", "POST /pay"), pick("-", ip)}
	key := pick("alpha:", "beta:", "alpha", "gamma:") + fmt.Sprint(r.IntN(3))
	held := [][]string{{"ID", id, "TENANT", tenant}, {pick("a", "r", "n") + ";" + tenant + ";" + id}}[r.IntN(2)]
	name := pick(g.Names...)
	switch name {
	case "rl.check", "rl.peek", "rl.explain", "rl.refund":
		return append(append([]string{name}, subject...), pick("1", "2", "5", "1000", "x"), "DIM", "user", pick("u1", "u2"))
	case "rl.reserve":
		return append(append([]string{name}, subject...), pick("1", "3"), "ID", id)
	case "rl.acquire":
		return append(append([]string{name}, subject...), "ID", id)
	case "rl.commit":
		return append(append([]string{name}, held...), pick("0", "1", "9"))
	case "rl.cancel", "rl.renew", "rl.release":
		return append([]string{name}, held...)
	case "rl.reset":
		return [][]string{{name, tenant}, {name, tenant, pick("tenant", "payments", "ip")}, {name, "-", "ip"}}[r.IntN(3)]
	case "rl.limits":
		return [][]string{{name}, {name, tenant}}[r.IntN(2)]
	case "rl.config":
		return []string{name, pick("VERSION", "RELOAD", "PROMOTE", "ABORT", "SHARDS")}
	case "cl.throttle", "gcra", "throttle":
		return []string{name, key, "3", "5", g.Period}
	case "del", "unlink":
		return []string{name, key, pick("alpha:1", "beta:1")}
	case "auth":
		return []string{name, Tenants[user], Tenants[user]} // wrong passwords are limited by real time
	case "client":
		return strings.Fields(pick("client list", "client kill id 1", "client kill id 2", "client kill user alpha skipme no", "client setname x", "client info", "client id", "client no-evict on"))
	case "acl":
		return strings.Fields(pick("acl list", "acl users", "acl getuser alpha", "acl whoami", "acl load", "acl dryrun alpha ping", "acl cat"))
	case "config":
		return strings.Fields(pick("config get *", "config set maxclients 1"))
	case "quit", "reply":
		return []string{"ping"}
	}
	return []string{name, pick(tenant, key, "1", "x")}
}
