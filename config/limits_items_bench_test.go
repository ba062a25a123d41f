package config

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// crowdedParts are the parts of a file with the given number of tenants, of which every
// second one overrides its plan.
func crowdedParts(tenants int) map[string]json.RawMessage {
	parts := map[string]json.RawMessage{
		table.KeyShared:           json.RawMessage(`{"version":1,"default_plan":"gold"}`),
		table.PrefixPlan + "gold": json.RawMessage(`[{"id":"tenant","by":["tenant"],"rate":"1000/s","burst":2000},{"id":"op","by":["tenant","op"],"rate":"100/s"}]`),
	}
	for i := range tenants {
		body := `{"plan":"gold"}`
		if i%2 == 0 {
			body = fmt.Sprintf(`{"plan":"gold","overrides":{"tenant":{"rate":"%d/s"}}}`, i+2)
		}
		parts[fmt.Sprintf("%st%07d", table.PrefixTenant, i)] = json.RawMessage(body)
	}
	return parts
}

// BenchmarkCompileParts measures compiling the limits of 10,000 tenants.
func BenchmarkCompileParts(b *testing.B) {
	parts := crowdedParts(10_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := CompileParts("crowd", parts, limit.CompileOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
