package httpapi

import (
	"strings"
	"testing"
)

// TestBareNames: a name without double quotes is named, and text that looks like one is not.
func TestBareNames(t *testing.T) {
	o := operationOf("check")
	for body, name := range map[string]string{
		`{tenant: "a"}`:                    "tenant",
		`{nope: 1}`:                        "nope",
		`{'tenant': "a"}`:                  "tenant",
		`{"tenant": "a", op: "b"}`:         "op",
		`{"tenant": "a, b: c", "op": x}`:   "",
		`{"tenant": "{op: x", "cost": 01}`: "",
		"{\"tenant\":\"a\",\"op\":\"query {\\n user: name }\"}": "",
		"{\"tenant\":\"a\",\"op\":\"query {\n  user: name }\"}": "",
		"{\"tenant\":\"a\",\"op\":\"x, to\to: y\"}":             "",
		`{"tenant": }`:                       "",
		`{"tenant": "a", "dims": {user: 1}}`: "user",
	} {
		_, _, err := o.decode([]byte(body))
		if err == nil && name == "" {
			continue
		}
		if err == nil {
			t.Errorf("%s is decoded", body)
			continue
		}
		want := "the name " + name + ` has no double quotes: write "` + name + `", for example `
		if strings.Contains(err.Error(), "has no double quotes") != (name != "") || name != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
