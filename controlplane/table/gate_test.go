package table

import "testing"

// TestReadRevision: a revision has plans or the shared limits, and no tenants.
func TestReadRevision(t *testing.T) {
	parts, err := ReadRevision([]byte(`{"SHARED":{"version":1},"PLAN#free":[]}`))
	if err != nil || len(parts) != 2 {
		t.Errorf("%v, %v", parts, err)
	}
	for _, body := range []string{`null`, `"text"`, `[]`, `1`, `{"TENANT#a":{}}`, `{"CELLS":{}}`, `{"REVISION#2":{}}`, `{`} {
		if parts, err := ReadRevision([]byte(body)); err == nil {
			t.Errorf("%s is read as %v", body, parts)
		}
	}
}

// TestReadGate: a gate names a revision; a document without one is an error and not a
// closed gate.
func TestReadGate(t *testing.T) {
	for body, want := range map[string]Gate{
		`{"revision":0}`: {},
		`{"revision":3,"percent":2.5,"threshold":100,"note":"x"}`: {Revision: 3, Percent: 2.5, Threshold: 100},
	} {
		if got, err := ReadGate([]byte(body)); err != nil || got != want {
			t.Errorf("%s is read as %+v, %v", body, got, err)
		}
	}
	for _, body := range []string{
		``, `null`, `{}`, `[]`, `{"revision":null}`, `{"version":1,"plans":{}}`, `{"revision":"1"}`, `{"revision":-1}`, `{"revision":1.5}`, `{"revision":1e40}`,
		`{"revision":1,"percent":101}`, `{"revision":1,"threshold":-1}`, `{"revision":1,"perc`, `{"revision":1}{}`,
	} {
		if got, err := ReadGate([]byte(body)); err == nil {
			t.Errorf("%s is read as %+v", body, got)
		}
	}
}
