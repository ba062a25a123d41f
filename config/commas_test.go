package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// TestManyCommas: a mapping of very many numbers without values has mistakes like any other, and advice for numbers alone.
func TestManyCommas(t *testing.T) {
	for text, want := range map[string]string{
		"rate: 1,000,000/s": "rate: 1000000/s", "burst: 2,500": "burst: 2500",
		"rate: 1000/s, 2000": "rate: 1000/s", "group: 1,2": "rate: 1000/s", "id: b, 5": "rate: 1000/s",
	} {
		_, _, err := ParseLimits("x", []byte("version: 1\nplans: {p: [{"+text+"}]}\n"), limit.CompileOptions{})
		if err == nil || !strings.Contains(err.Error(), "write numbers without commas, "+want+"\n") {
			t.Errorf("%s: %v", text, err)
		}
	}
	var keys strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&keys, ",%d", 100_000+i)
	}
	begin := time.Now()
	_, _, err := ParseLimits("x", []byte("version: 1\nplans: {p: [{id: a, by: [tenant], rate: 1"+keys.String()+"}]}\n"), limit.CompileOptions{})
	if err == nil {
		t.Error("accepted")
	}
	t.Logf("%s", time.Since(begin))
}
