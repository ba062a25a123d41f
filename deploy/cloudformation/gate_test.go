package cloudformation

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/limitgate/limitgate/controlplane/table"
)

// schema is the subset of JSON schema that the gate's schema uses.
type schema struct {
	Schema               string `json:"$schema"`
	Type                 string
	AdditionalProperties bool
	Required             []string
	Properties           map[string]struct {
		Type             string
		Minimum, Maximum *float64
	}
}

// admits reports whether an object of numbers is valid.
func (s *schema) admits(body map[string]float64) bool {
	for name, value := range body {
		property, ok := s.Properties[name]
		if !ok || property.Type == "integer" && value != math.Trunc(value) ||
			property.Minimum != nil && value < *property.Minimum || property.Maximum != nil && value > *property.Maximum {
			return false
		}
	}
	return !slices.ContainsFunc(s.Required, func(name string) bool { _, ok := body[name]; return !ok })
}

// TestSchemaIsOfTheGate checks that AppConfig accepts a gate exactly if proxies do.
func TestSchemaIsOfTheGate(t *testing.T) {
	parsed, err := parseTemplates(readTemplates(t))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := at(parsed, "Resources", "GateProfile", "Properties", "Validators", "0", "Content").(string)
	var s schema
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	if s.Type != "object" || s.AdditionalProperties || s.Schema != "http://json-schema.org/draft-04/schema#" {
		t.Errorf("it is a schema of %+v", s)
	}
	for _, body := range []map[string]float64{
		{"revision": 0, "percent": 0, "threshold": 0},
		{"revision": 7, "percent": 12.5, "threshold": 100},
		{"revision": 1, "percent": 100, "threshold": 0.1},
		{"revision": 1.5, "percent": 1, "threshold": 1},
		{"revision": -1, "percent": 1, "threshold": 1},
		{"revision": 1, "percent": -0.1, "threshold": 1},
		{"revision": 1, "percent": 100.1, "threshold": 1},
		{"revision": 1, "percent": 1, "threshold": -1},
		{"revision": 1, "percent": 1, "threshold": 101},
	} {
		_, err := table.ReadGate([]byte(asJSON(body)))
		if s.admits(body) != (err == nil) {
			t.Errorf("%v: the schema reports %v, proxies %v", body, s.admits(body), err)
		}
	}
	// The schema requires all fields, so that an incomplete gate tries nothing by
	// mistake.
	if s.admits(map[string]float64{"revision": 1, "threshold": 1}) || s.admits(map[string]float64{"revision": 1, "percent": 1, "threshold": 1, "percentage": 1}) {
		t.Error("the schema takes half a gate, or more than one")
	}
	closed, _ := at(parsed, "Resources", "GateClosed", "Properties", "Content").(string)
	if want := asJSON(table.Gate{}); closed != want {
		t.Errorf("the gate begins with %s, not %s", closed, want)
	}
}
