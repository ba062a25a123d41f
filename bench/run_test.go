package bench

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func names(cases []Case) []string {
	var all []string
	for _, c := range cases {
		all = append(all, c.Name)
	}
	return all
}

func TestCasesHaveNamesOfTheirOwnAndSayWhatTheyAre(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := make(map[string]bool)
	for _, c := range Cases() {
		if !name.MatchString(c.Name) || seen[c.Name] {
			t.Errorf("%q is no name, or that of two cases", c.Name)
		}
		seen[c.Name] = true
		if c.Title == "" || !strings.HasSuffix(c.About, ".") || c.run == nil {
			t.Errorf("%s has title %q and says %q", c.Name, c.Title, c.About)
		}
	}
}

func TestCasesThatStandAsideRunWhenTheyAreNamed(t *testing.T) {
	all := func() []Case { return []Case{{Name: "redis-p1"}, {Name: "garbage-p1", Aside: true}} }
	for only, want := range map[string]string{"": "redis-p1", "garbage-*": "garbage-p1", "redis-p1 garbage-p1": "redis-p1 garbage-p1"} {
		picked, err := pick(all(), strings.Fields(only))
		if err != nil || !slices.Equal(names(picked), strings.Fields(want)) {
			t.Errorf("pick %q = %v, %v", only, names(picked), err)
		}
	}
}

func TestCasesArePickedByNameAndBeginning(t *testing.T) {
	all := []Case{{Name: "redis-p1"}, {Name: "redis-p16"}, {Name: "hot-p16"}}
	for _, test := range []struct {
		only string
		want string
	}{
		{"", "redis-p1 redis-p16 hot-p16"},
		{"redis-p1", "redis-p1"},
		{"hot-p16 redis-p1", "redis-p1 hot-p16"},
		{"redis-*", "redis-p1 redis-p16"},
		{"redis-* redis-p1", "redis-p1 redis-p16"},
	} {
		picked, err := pick(all, strings.Fields(test.only))
		if err != nil || !slices.Equal(names(picked), strings.Fields(test.want)) {
			t.Errorf("pick %q = %v, %v", test.only, names(picked), err)
		}
	}
	for _, only := range []string{"redis", "cold-*"} {
		if _, err := pick(all, []string{"redis-p1", only}); err == nil || !strings.Contains(err.Error(), only) {
			t.Errorf("pick %q = %v", only, err)
		}
	}
}
