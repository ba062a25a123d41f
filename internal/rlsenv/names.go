package rlsenv

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// families are the prefixes of variables that no other program is likely to have. A family comes
// before those whose prefixes begin its own.
var families = []string{"CONFIG_GRPC_XDS_", "REDIS_PERSECOND_", "REDIS_", "RUNTIME_", "LIMIT_", "GRPC_", "MEMCACHE_"}

// otherNames are names that other programs have for variables of ratelimit.
var otherNames = map[string]string{
	"REDIS_PASSWORD": "REDIS_AUTH",
	"REDIS_HOST":     "REDIS_URL",
	"REDIS_ADDR":     "REDIS_URL",
}

// shellName matches the names that notices may repeat.
var shellName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// serviceVariable matches what follows a family in variables that Kubernetes sets in every pod of
// a namespace with a Service called redis, redis-anything or the like.
var serviceVariable = regexp.MustCompile(`^(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// misspelled adds notices about variables that look like those of ratelimit and are none.
func (p *problems) misspelled() {
	known := map[string]bool{}
	for _, r := range Table() {
		known[r.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(p.environ)) {
		if known[name] || !shellName.MatchString(name) {
			continue
		}
		if near := nearest(name, known); near != "" {
			p.note(name, "it is not a variable of ratelimit, and nothing reads it; did you mean "+near+"?")
		}
	}
}

// nearest returns the known name of which name is likely a misspelling, or nothing.
func nearest(name string, known map[string]bool) string {
	if other := otherNames[name]; other != "" {
		return other
	}
	i := slices.IndexFunc(families, func(family string) bool { return strings.HasPrefix(name, family) })
	if i < 0 {
		return ""
	}
	family := families[i]
	rest := strings.TrimPrefix(name, family)
	if serviceVariable.MatchString(rest) {
		return ""
	}
	var candidates []string // without the prefix, which would make all names similar
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if rest, ok := strings.CutPrefix(name, family); ok {
			candidates = append(candidates, rest)
		}
	}
	if near := limit.Nearest(rest, candidates); near != "" {
		return family + near
	}
	return ""
}
