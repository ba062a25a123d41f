package edge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/edge"
)

// TestDiff checks that forms of a template do not count, and that each value does.
func TestDiff(t *testing.T) {
	const rendered = `
# a comment
Resources:
  WebACL:
    Rules:
      - {Name: one, Limit: 60, Action: {Block: {}}}
      - {Name: two, Limit: 70}
`
	for name, row := range map[string]struct {
		deployed string
		want     []string
	}{
		"the same":           {rendered, nil},
		"other form":         {`{"Resources": {"WebACL": {"Rules": [{"Limit": 60, "Action": {"Block": {}}, "Name": "one"}, {"Name": "two", "Limit": "70"}]}}}`, nil},
		"of the API":         {`{"StagesAvailable": [], "TemplateBody": "Resources: {WebACL: {Rules: [{Name: one, Limit: 60, Action: {Block: {}}}, {Name: two, Limit: 70}]}}"}`, nil},
		"of the API, parsed": {`{"TemplateBody": {"Resources": {"WebACL": {"Rules": [{"Name": "one", "Limit": 60, "Action": {"Block": {}}}, {"Name": "two", "Limit": 70}]}}}}`, nil},
		"another number": {strings.Replace(rendered, "60", "61", 1), []string{
			`- Resources.WebACL.Rules[one].Limit: "61"`, `+ Resources.WebACL.Rules[one].Limit: "60"`,
		}},
		"another action": {strings.Replace(rendered, "Block", "Count", 1), []string{
			`+ Resources.WebACL.Rules[one].Action.Block: {}`, `- Resources.WebACL.Rules[one].Action.Count: {}`,
		}},
		"a rule less": {"Resources: {WebACL: {Rules: [{Name: two, Limit: 70}]}}", []string{
			`+ Resources.WebACL.Rules[one].Action.Block: {}`, `+ Resources.WebACL.Rules[one].Limit: "60"`, `+ Resources.WebACL.Rules[one].Name: "one"`,
		}},
		"the same name twice": {strings.Replace(rendered, "Name: two", "Name: one", 1), []string{
			`- Resources.WebACL.Rules[one#1].Limit: "70"`, `- Resources.WebACL.Rules[one#1].Name: "one"`,
			`+ Resources.WebACL.Rules[two].Limit: "70"`, `+ Resources.WebACL.Rules[two].Name: "two"`,
		}},
	} {
		got, err := edge.Diff([]byte(row.deployed), []byte(rendered))
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: %v\n%s", name, err, strings.Join(got, "\n"))
		}
	}
	for _, text := range []string{"", "x", "a: 1", "Resources", "{", "TemplateBody: ''"} {
		if lines, err := edge.Diff([]byte(text), []byte(rendered)); err == nil {
			t.Errorf("%q is compared: %q", text, lines)
		}
	}
}

// TestDiffBombs checks that aliases that repeat themselves end.
func TestDiffBombs(t *testing.T) {
	bomb := "Resources:\n  a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
	for i := range 9 {
		name := string(rune('0' + i))
		next := string(rune('1' + i))
		bomb += "  a" + next + ": &a" + next + " [" + strings.TrimSuffix(strings.Repeat("*a"+name+",", 10), ",") + "]\n"
	}
	if _, err := edge.Diff([]byte(bomb), []byte("Resources: {}")); err == nil {
		t.Error("a billion values are compared")
	}
	bomb = "Resources:\n  a0: &a0 {x: 1}\n"
	for i := range 9 {
		bomb += fmt.Sprintf("  a%d: &a%d {%s}\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("k: *a%d, ", i), 10), ", "))
	}
	if _, err := edge.Diff([]byte(bomb), []byte("Resources: {}")); err == nil {
		t.Error("a billion values with the same keys are compared")
	}
}
