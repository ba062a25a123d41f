package config

import (
	"bytes"
	"strings"
	"testing"
)

func TestUsageTellsEverySetting(t *testing.T) {
	var out bytes.Buffer
	Usage(&out)
	help := out.String()
	for _, r := range newTable(new(Settings)) {
		_, entry, ok := strings.Cut(strings.ReplaceAll(help, "\n      ", " \n      "), "\n  "+r.flag()+" ")
		entry, _, _ = strings.Cut(entry, "\n  -")
		if !ok {
			t.Errorf("help does not list %s", r.flag())
			continue
		}
		if strings.Contains(entry, r.env()) != (r.source != flagsOnly) {
			t.Errorf("%s is missing in: %s", r.env(), entry)
		}
		if r.source != flagsOnly && !strings.Contains(entry, "default "+r.initial) && r.initial != "" {
			t.Errorf("the default %s is not in: %s", r.initial, entry)
		}
		if !strings.Contains(entry, r.value.bounds) || !strings.Contains(entry, r.usage) {
			t.Errorf("the bounds %s or the use are not in: %s", r.value.bounds, entry)
		}
	}
	for _, part := range []string{"\nUsage: limitgate serve [flags]\n", "\nExample:\n", "\n  --listen HOST:PORT  (default 127.0.0.1:6380, LIMITGATE_LISTEN)\n        where Redis clients connect\n"} {
		if !strings.Contains(help, part) {
			t.Errorf("help lacks %q", part)
		}
	}
	for line := range strings.Lines(help) {
		if len(line) > 100 {
			t.Errorf("this line of help is %d long: %s", len(line), line)
		}
	}
}

func TestTableIsSound(t *testing.T) {
	flags, names := map[string]bool{}, map[string]bool{}
	group, groups := "", map[string]bool{}
	for _, r := range newTable(new(Settings)) {
		if flags[r.flag()] || names[r.name] {
			t.Errorf("%s is there twice", r.name)
		}
		flags[r.flag()], names[r.name] = true, true
		if r.group != group && groups[r.group] {
			t.Errorf("%s is apart from the rest of %s", r.name, r.group)
		}
		group = r.group
		groups[group] = true
		if isOfService(r.env(), "") {
			t.Errorf("%s looks like a variable that Kubernetes sets", r.env())
		}
		// readFlags recognizes a switch by its lack of an argument.
		if isSwitch := r.initial == "false"; isSwitch != (r.value.arg == "") {
			t.Errorf("%s: a switch takes no value, anything else does", r.name)
		}
	}
}
