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
