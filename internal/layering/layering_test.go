package layering

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// modulePath is the prefix of the import path of every package, those of bench too.
const modulePath = "github.com/limitgate/limitgate"

// row describes one package.
type row struct {
	reason string
	// imports are the packages of this repository that non-test code may import.
	imports []string
	// everything lifts the limit on imports. Packages that are for tests stay
	// out of reach for non-test code.
	everything bool
	// forTests means that only tests may import the package.
	forTests bool
	// testsOnly means that the package has only tests.
	testsOnly bool
	// settled means that the package receives all settings: it reads no file, no flag and
	// no environment by itself.
	settled bool
}

// table has a row for every package, from the bottom up.
var table = map[string]row{
	"limit/bucket": {
		reason:  "the maths, from numbers to numbers",
		settled: true,
	},
	"limit": {
		reason:  "the model, which every package may use",
		imports: []string{"limit/bucket"},
		settled: true,
	},
	"limiter": {
		reason:  "the decision calls stores through its own interfaces",
		imports: []string{"limit", "limit/bucket", "internal/latency"},
		settled: true,
	},
	"internal/breaker": {
		reason:  "counts successes and failures of any calls",
		settled: true,
	},
	"memory": {
		reason:  "an engine that knows buckets, and not its callers",
		imports: []string{"limit", "limit/bucket"},
		settled: true,
	},
	"cluster": {
		reason:  "a store beside memory, they don't know each other",
		imports: []string{"limit", "limit/bucket", "internal/breaker", "internal/latency", "internal/resp", "internal/run"},
		settled: true,
	},
	"cluster/doctor": {
		reason:  "examines a store over the connections that a store opens",
		imports: []string{"cluster", "limit", "limit/bucket", "internal/resp"},
	},
	"internal/resp": {
		reason:  "bytes of one protocol, without their meaning",
		settled: true,
	},
	"internal/adminserver": {
		reason:  "serves any handler over bounded connections",
		settled: true,
	},
	"internal/tlsfiles": {
		reason: "makes TLS configurations of files, whose paths it receives",
	},
	"internal/redisauth": {
		reason:  "supplies passwords to anything that logs in",
		imports: []string{"internal/run"},
		settled: true,
	},
	"internal/logwriter": {
		reason:  "writes lines, whatever they are",
		settled: true,
	},
	"internal/run": {
		reason:  "runs functions, whatever they do",
		settled: true,
	},
	"backstop": {
		reason:  "a share of the limit, kept and bounded in its own way",
		imports: []string{"limit", "limit/bucket"},
		settled: true,
	},
	"internal/instances": {
		reason:  "counts proxies, by a store or servers that it knows as interfaces and protocols",
		imports: []string{"internal/run"},
		settled: true,
	},
	"server": {
		reason:  "connections and commands, independent of their meaning",
		settled: true,
	},
	"internal/jwks": {
		reason:  "keys of a file or a URL that it receives",
		settled: true,
	},
	"internal/jwks/jwkstest": {
		reason:  "signs tokens for tests",
		settled: true,
	},
	"internal/jwtauth": {
		reason:  "checks tokens of clients by keys",
		imports: []string{"internal/jwks"},
		settled: true,
	},
	"internal/failures": {
		reason:  "limits failures by our own maths, whatever fails",
		imports: []string{"limit/bucket"},
		settled: true,
	},
	"internal/users": {
		reason:  "checks passwords and rights, whatever they are for",
		imports: []string{"internal/failures"},
		settled: true,
	},
	"internal/bypass": {
		reason:  "checks tokens by keys, and takes shares of their rate",
		imports: []string{"limit", "limit/bucket", "backstop", "internal/failures", "internal/jwks"},
		settled: true,
	},
	"commands": {
		reason:  "parse, decide, reply: it knows the decision and not the stores behind it",
		imports: []string{"limit", "limit/bucket", "limiter", "internal/users", "internal/bypass", "internal/denials", "internal/httpfields"},
		settled: true,
	},
	"httpapi": {
		reason:  "another front: it asks the handler of commands by names in place of positions",
		imports: []string{"limit", "limit/bucket", "commands", "internal/users", "internal/httpfields"},
		settled: true,
	},
	"internal/denials": {
		reason:  "keeps typed decisions for people",
		imports: []string{"limit"},
		settled: true,
	},
	"internal/latency": {
		reason:  "counts durations, and knows nothing else",
		imports: []string{},
		settled: true,
	},
	"internal/httpfields": {
		reason:  "writes decisions as header fields, for every front",
		imports: []string{"limit", "limit/bucket"},
		settled: true,
	},
	"metrics": {
		reason:  "counts typed decisions",
		imports: []string{"limit", "internal/latency"},
		settled: true,
	},
	"examples": {
		reason:  "the sample limits as bytes, built into the binary",
		settled: true,
	},
	"internal/accesslog": {
		reason:  "reads lines of other software, from the reader of its caller",
		settled: true,
	},
	"internal/replay": {
		reason:  "decides past requests with the real limiter on the store in memory",
		imports: []string{"limit", "limiter", "memory", "internal/accesslog"},
		settled: true,
	},
	"config": {
		reason:  "reads settings and the limits file, which the command passes on",
		imports: []string{"limit", "controlplane/table"},
	},
	"controlplane/table": {
		reason:  "the items of a table of limits, independent of the table's place",
		settled: true,
	},
	"controlplane/catalog": {
		reason:  "one set made of a table's items, received from any reader of the table",
		imports: []string{"limit", "controlplane/table"},
	},
	"controlplane/dynamo": {
		reason:  "the table and its messages on AWS, and not their use",
		imports: []string{"controlplane/table"},
		settled: true,
	},
	"controlplane/admission": {
		reason:  "counts the units that typed decisions admit",
		imports: []string{"limit"},
		settled: true,
	},
	"controlplane/appconfig": {
		reason:  "the gate of a rollout on AWS, and not its content",
		settled: true,
	},
	"controlplane/rollout": {
		reason:  "decides the same request by two limiters, each on a part of the limits in memory",
		imports: []string{"limit", "limiter", "backstop"},
		settled: true,
	},
	"controlplane/audit": {
		reason:  "writes changes to a bucket, and reads them back",
		imports: []string{"controlplane/table"},
		settled: true,
	},
	"controlplane": {
		reason:  "carries changes on, between interfaces to their source and their receivers",
		imports: []string{"limit", "controlplane/table", "internal/run"},
		settled: true,
	},
	"controlplane/awscheck": {
		reason:  "checks the assumptions of the code in an account, as its user",
		imports: []string{"controlplane/table", "controlplane/dynamo", "controlplane/audit", "controlplane"},
	},
	"internal/awsclient": {
		reason: "finds AWS by the environment, for the commands",
	},
	"cmd/limitgate-lambda": {
		reason:     "wires the control plane for AWS Lambda",
		everything: true,
	},
	"internal/proxy": {
		reason:     "assembles a proxy of all its parts",
		everything: true,
	},
	"scripts/licences": {
		reason: "checks dependencies, of which it knows the folders",
	},
	"scripts/sbom": {
		reason: "reads a binary",
	},
	"internal/limitimport": {
		reason: "turns text into text: it knows the syntax of limits files, not their meaning",
	},
	"scripts/tour_picture": {
		reason: "draws docs/tour.md, and is part of no binary",
	},
	"cmd/limitgate": {
		reason:     "wires everything, and nothing imports it",
		everything: true,
	},
	"integration": {
		reason:     "tests of the whole with real servers",
		everything: true,
		testsOnly:  true,
	},
	"clients": {
		reason:    "drives clients of other modules and languages from outside",
		testsOnly: true,
	},
	"deploy/cloudformation": {
		reason:    "compares a template with the code that uses its resources",
		testsOnly: true,
	},
	"internal/simulation": {
		reason:    "a fleet of the real parts in simulated time, for its tests alone",
		testsOnly: true,
	},
	"internal/judge": {
		reason:    "random histories on all stores, compared with the reference, for its tests alone",
		testsOnly: true,
	},
	"internal/storetest": {
		reason:   "the contract of every store, stated through the limiter that uses it",
		imports:  []string{"limit", "limit/bucket", "limiter"},
		forTests: true,
	},
	"internal/isolation": {
		reason:   "makes commands of users, and knows no other package",
		forTests: true,
		settled:  true,
	},
	"internal/reference": {
		reason:   "decides by the documents alone, so that no mistake of the maths is in it too",
		forTests: true,
		settled:  true,
	},
	"internal/linear": {
		reason:   "a model of limits written from their documentation: it shares no maths with the code under test",
		forTests: true,
		settled:  true,
	},
	"internal/load": {
		reason:  "sends bytes and counts replies; of Redis it knows the hash slot of a key",
		imports: []string{"limit"},
		settled: true,
	},
	"bench": {
		reason:  "measures programs from outside, as their clients and their operators see them",
		imports: []string{"internal/load", "internal/servers", "internal/resp"},
	},
	"bench/limitgate-bench": {
		reason:  "a command line around the benchmark",
		imports: []string{"internal/accesslog", "bench"},
	},
	"internal/servers": {
		reason: "starts processes, and does not know their use",
	},
	"internal/redistest": {
		reason:   "starts real servers for the tests of any package",
		imports:  []string{"internal/faultnet", "internal/servers"},
		forTests: true,
	},
	"internal/awstest": {
		reason:   "starts a real emulator of AWS for the tests of any package",
		imports:  []string{"internal/leftout", "internal/servers"},
		forTests: true,
	},
	"internal/leftout": {
		reason: "the one reason for which a test may be skipped",
	},
	"internal/faultnet": {
		reason: "forwards any bytes badly",
	},
	"internal/testreport": {
		reason: "runs go test on any packages, and counts",
	},
	"internal/tablemodel": {
		reason: "runs real control planes and proxies of a table in simulated time",
	},
	"internal/layering": {
		reason: "looks at all packages from outside",
	},
}

func TestEveryRowHasAReasonAndNamesRows(t *testing.T) {
	for name, r := range table {
		if r.reason == "" {
			t.Errorf("the row of %s gives no reason", name)
		}
		for _, imported := range r.imports {
			if _, found := table[imported]; !found {
				t.Errorf("the row of %s allows %s, which has no row", name, imported)
			}
		}
	}
}

func TestImportsPointDown(t *testing.T) {
	for _, problem := range checkImports(table, listPackages(t)) {
		t.Error(problem)
	}
}

// checkImports returns the imports that the table forbids.
func checkImports(table map[string]row, packages []listed) []string {
	var problems []string
	for _, p := range packages {
		r, found := table[p.name()]
		if !found {
			problems = append(problems, fmt.Sprintf(
				"%s has no row in the table: say what it may import, and why", p.name()))
			continue
		}
		for _, imported := range p.ownImports() {
			if why := refuse(table, r, imported); why != "" {
				problems = append(problems, fmt.Sprintf("%s imports %s: %s", p.name(), imported, why))
			}
		}
	}
	return problems
}

func TestTheTableAllowsNothingUnused(t *testing.T) {
	for _, problem := range checkUnused(table, listPackages(t)) {
		t.Error(problem)
	}
}

// checkUnused returns the rows of missing packages, and the allowed imports that no
// package uses.
func checkUnused(table map[string]row, packages []listed) []string {
	imports := map[string][]string{}
	for _, p := range packages {
		imports[p.name()] = p.ownImports()
	}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(table)) {
		made, found := imports[name]
		if !found {
			problems = append(problems, fmt.Sprintf("the table has a row of %s, which is no package", name))
			continue
		}
		for _, allowed := range table[name].imports {
			if !slices.Contains(made, allowed) {
				problems = append(problems, fmt.Sprintf("the row of %s allows %s, which it does not import", name, allowed))
			}
		}
	}
	return problems
}

// refuse returns the reason why non-test code of a row may not import a package, or
// nothing if it may.
func refuse(table map[string]row, r row, imported string) string {
	switch {
	case table[imported].forTests:
		return "it is for tests"
	case r.testsOnly:
		return "there should be nothing but tests here"
	case table[imported].testsOnly || strings.HasPrefix(imported, "cmd/"):
		return "nothing may"
	case r.everything || slices.Contains(r.imports, imported):
		return ""
	default:
		return "the table allows " + allowed(r) + ", because: " + r.reason
	}
}

func allowed(r row) string {
	if len(r.imports) == 0 {
		return "nothing of this repository"
	}
	return strings.Join(r.imports, ", ")
}

func TestCheckImportsReportsWhatTheTableForbids(t *testing.T) {
	for name, test := range map[string]struct {
		from, imports string
		want          string
	}{
		"down":                {"limiter", "limit", ""},
		"up":                  {"limit", "limiter", "limit imports limiter: the table allows limit/bucket"},
		"beside":              {"cluster", "memory", "cluster imports memory: the table allows limit"},
		"unknown package":     {"gossip", "limit", "gossip has no row in the table"},
		"unknown import":      {"limiter", "gossip", "limiter imports gossip: the table allows limit"},
		"below a row":         {"limiter", "limit/maths", "limiter imports limit/maths: the table allows limit"},
		"wiring":              {"cmd/limitgate", "cluster", ""},
		"test harness":        {"cmd/limitgate", "internal/redistest", "cmd/limitgate imports internal/redistest: it is for tests"},
		"code in integration": {"integration", "limit", "integration imports limit: there should be nothing but tests"},
		"the command":         {"config", "cmd/limitgate", "config imports cmd/limitgate: nothing may"},
		"somebody else's":     {"limit", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := listed{ImportPath: modulePath + "/" + test.from, Imports: []string{"fmt", "example.org/limit"}}
			if test.imports != "" {
				p.Imports = append(p.Imports, modulePath+"/"+test.imports)
			}
			got := strings.Join(checkImports(table, []listed{p}), "\n")
			if (test.want == "") != (got == "") || !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCheckUnusedReportsUnusedRowsAndImports(t *testing.T) {
	rows := map[string]row{"limit": {}, "limiter": {imports: []string{"limit"}}}
	for name, test := range map[string]struct {
		packages map[string]string // and the imports of each
		want     string
	}{
		"all used":        {map[string]string{"limit": "fmt", "limiter": modulePath + "/limit"}, ""},
		"unused":          {map[string]string{"limit": "fmt", "limiter": "fmt"}, "the row of limiter allows limit, which it does not import"},
		"somebody else's": {map[string]string{"limit": "fmt", "limiter": "example.org/limit"}, "the row of limiter allows limit, which it does not import"},
		"no package":      {map[string]string{"limiter": modulePath + "/limit"}, "the table has a row of limit, which is no package"},
	} {
		t.Run(name, func(t *testing.T) {
			var packages []listed
			for path, imported := range test.packages {
				packages = append(packages, listed{ImportPath: modulePath + "/" + path, Imports: []string{imported}})
			}
			if got := strings.Join(checkUnused(rows, packages), "\n"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTheTableHasNoCircle(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if reaches(name, name, map[string]bool{}) {
			t.Errorf("the table lets %s import itself through others", name)
		}
	}
}

// reaches reports whether the table lets one package import another, directly
// or through others.
func reaches(from, to string, seen map[string]bool) bool {
	for _, next := range table[from].imports {
		if next == to {
			return true
		}
		if !seen[next] {
			seen[next] = true
			if reaches(next, to, seen) {
				return true
			}
		}
	}
	return false
}
