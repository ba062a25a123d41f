package alerts

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// shown is the part of a dashboard that tests look at.
type shown struct {
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct {
			Expr       string
			Datasource struct{ UID string }
		}
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
}

func parseDashboard(t *testing.T) (d shown) {
	t.Helper()
	text, err := Dashboard()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// dashboardExpressions returns the expressions of the dashboard by the names of their panels,
// with values in place of its variables.
func dashboardExpressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	values := strings.NewReplacer("$job", "limitgate", "$__rate_interval", "5m")
	d := parseDashboard(t)
	for _, p := range d.Panels {
		for i, target := range p.Targets {
			all[fmt.Sprintf("dashboard/%s/%d", p.Title, i)] = values.Replace(target.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		all["dashboard/"+a.Name] = values.Replace(a.Expr)
	}
	return all
}

// TestDashboard checks that panels have queries of the selected jobs and data source, ids of
// their own, and places of their own.
func TestDashboard(t *testing.T) {
	d := parseDashboard(t)
	if v := d.Templating.List; len(v) != 2 || v[0].Name != "datasource" || v[1].Name != "job" {
		t.Errorf("the variables are %v", v)
	}
	ids, taken, titles := map[int]bool{}, map[[2]int]string{}, map[string]bool{}
	rows := 0
	for _, p := range d.Panels {
		if ids[p.ID] || titles[p.Title] {
			t.Errorf("the id or the title of %q is there twice", p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" || at[0] >= 24 {
					t.Fatalf("%q is at %v, where %q is or the page ends", p.Title, at, taken[at])
				}
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			rows++
			continue
		}
		if len(p.Targets) == 0 {
			t.Errorf("%q has no query", p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != "${datasource}" || !strings.Contains(target.Expr, `job=~"$job"`) {
				t.Errorf("%q asks %s for %s", p.Title, target.Datasource.UID, target.Expr)
			}
		}
	}
	if rows != 6 {
		t.Errorf("%d rows", rows)
	}
}
