package table

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDifferences(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{`{"plan":"free"}`, `{ "plan" : "free" }`, ""},
		{`{"plan":"free"}`, `{"plan":"gold"}`, "plan: free -> gold"},
		{
			`{"plan":"free","overrides":{"tenant":{"burst":2000,"rate":"5/s"}}}`, `{"plan":"free","overrides":{"tenant":{"burst":20}}}`,
			"overrides.tenant.burst: 2000 -> 20; -overrides.tenant.rate: 5/s",
		},
		{``, `{"plan":"free","overrides":{}}`, "+overrides: {}; +plan: free"},
		{`{"plan":"free"}`, ``, "-plan: free"},
		{`[{"id":"a","rate":"1/s"},{"id":"b","rate":"2/s","when":{"op":"GET *"}}]`, `[{"id":"b","rate":"3/s","when":{"op":"GET *"}},{"id":"a","rate":"1/s"}]`, "b.rate: 2/s -> 3/s"},
		{`[{"id":"a"},{"id":"b"}]`, `[{"id":"b"},{"id":"a"}]`, "in another order"},
		{`[{"id":"a"},{"id":"a"}]`, `[{"id":"a","x":1},{"id":"a"}]`, "+0.x: 1"},
		{`["a","b"]`, `["a"]`, "-1: b"},
		{`{"a":9007199254740992}`, `{"a":9007199254740993}`, "a: 9007199254740992 -> 9007199254740993"},
		{`{"a":null}`, `{"a":true}`, "a: null -> true"},
		{`{}`, `no JSON`, "body: {} -> no JSON"},
		{`{"a":"x"}`, `{"a":"\u001b[2Jx\ny"}`, `a: x -> "\x1b[2Jx\ny"`},
		{`{}`, `{"a\nb":1}`, `+"a\nb": 1; -body: {}`},
		{``, ``, ""},
	} {
		if got := strings.Join(Differences(json.RawMessage(c.before), json.RawMessage(c.after)), "; "); got != c.want {
			t.Errorf("%s to %s: %q, want %q", c.before, c.after, got, c.want)
		}
	}
}
