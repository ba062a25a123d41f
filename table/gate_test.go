package table

import "testing"

// TestReadRevision: a revision is what has plans or the shared limits, and no tenants.
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
