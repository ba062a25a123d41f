package emftest

import (
	"strings"
	"testing"
)

// TestCheck checks that each rule of the specification is checked.
func TestCheck(t *testing.T) {
	const valid = `{"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"N","Dimensions":[["D"]],"Metrics":[{"Name":"M","Unit":"Count","StorageResolution":1}]}]},"D":"d","M":1,"p":{}}` + "\n"
	if l, err := Check([]byte(valid)); err != nil || l.Metrics["M"][0] != 1 || l.Dimensions["D"] != "d" || l.Resolution["M"] != 1 || len(l.Properties) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	for _, change := range [][2]string{
		{"\n", ""},
		{"\n", "\n\n"},
		{`"p":{}`, `"p":"` + strings.Repeat("x", maxBytes) + `"`},
		{`"p":{}`, `"M":2`},
		{`"_aws"`, `"aws"`},
		{`"Timestamp":1,`, ``},
		{`"Timestamp":1`, `"Timestamp":1.5`},
		{`"Timestamp":1`, `"Timestamp":"1"`},
		{`"Timestamp":1`, `"Timestamp":1,"Other":1`},
		{`"Namespace":"N",`, ``},
		{`"Namespace":"N"`, `"Namespace":""`},
		{`"Namespace":"N"`, `"Namespace":"` + strings.Repeat("n", 1025) + `"`},
		{`"Namespace":"N"`, `"Namespace":"N","Other":1`},
		{`[["D"]]`, `[]`},
		{`[["D"]]`, `[[1]]`},
		{`[["D"]]`, `[[""]]`},
		{`[["D"]]`, `[["D"` + strings.Repeat(`,"D"`, 30) + `]]`},
		{`[["D"]]`, `[["` + strings.Repeat("d", 251) + `"]]`},
		{`[["D"]]`, `[["E"]]`},
		{`"D":"d"`, `"D":1`},
		{`"D":"d"`, `"D":"` + strings.Repeat("d", 1025) + `"`},
		{`{"Name":"M",`, `{`},
		{`{"Name":"M"`, `{"Name":"M2"`},
		{`{"Name":"M"`, `{"Name":"M","Other":1`},
		{`"Metrics":[`, `"Metrics":[` + strings.Repeat(`{"Name":"M"},`, 100)},
		{`"Count"`, `"count"`},
		{`"Count"`, `"Milliseconds/Second"`},
		{`"StorageResolution":1`, `"StorageResolution":5`},
		{`"M":1`, `"M":"1"`},
		{`"M":1`, `"M":null`},
		{`"M":1`, `"M":[]`},
		{`"M":1`, `"M":["1"]`},
		{`"M":1`, `"M":[1` + strings.Repeat(",1", 100) + `]`},
	} {
		changed := strings.Replace(valid, change[0], change[1], 1)
		if changed == valid {
			t.Fatalf("%s is not in the line", change[0])
		}
		if _, err := Check([]byte(changed)); err == nil {
			t.Errorf("with %.60s in place of %s the line is valid", change[1], change[0])
		}
	}
}
