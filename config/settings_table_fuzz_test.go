package config

import (
	"encoding/json"
	"testing"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// FuzzTableBodies: any content of a table's tenant, plan, shared part, cells, revision or
// gate is used or rejected, and if it is used, requests can be decided with it.
func FuzzTableBodies(f *testing.F) {
	for _, body := range []string{
		``, `null`, `{}`, `[]`, `{"plan":"free","overrides":{"tenant":{"rate":"7/s"}}}`, `[{"id":"tenant","by":["tenant"],"rate":"100/s"}]`,
		`{"version":1,"default_plan":"free"}`, `{"cells":[{"id":"a","weight":1},{"id":"b","weight":2,"gone":true}]}`,
		`{"SHARED":{"version":1},"PLAN#free":[]}`, `{"revision":7,"percent":5,"threshold":5}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, key := range []string{"SHARED", "PLAN#free", "PLAN#gold", "TENANT#acme", "CELLS", "REVISION#3"} {
			parts := trialParts(nil)
			parts[key] = json.RawMessage(body)
			opts := strictOptions
			var err error
			if opts.Cells, err = CellsOf(parts, "a", 1); err != nil {
				continue
			}
			set, _, err := CompileParts("table", parts, opts)
			if err != nil {
				continue
			}
			gate, err := table.ReadGate(body)
			if err != nil {
				gate = table.Gate{Revision: 3, Percent: 50}
			}
			tried, _ := TryRevision("table", parts, set, gate, opts)
			for _, tenant := range []string{"acme", "t0", "t1"} {
				for _, l := range tried.TenantLimits(tenant) {
					if l.Action == limit.ActionLimit && (l.Params.Capacity < 1 || l.Params.Count < 1) {
						t.Errorf("%s with %q: %s admits nothing", key, body, l.ID)
					}
				}
			}
		}
	})
}
