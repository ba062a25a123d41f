package backstop

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// TestCeilingOfOneTenant: the rate of one tenant is advised times the tenants that there are.
func TestCeilingOfOneTenant(t *testing.T) {
	fits := limit.TotalRate{Units: 1, Rounded: true, OneTenant: true, Why: "plan free admits of one tenant"}
	for proxies, among := range map[int]string{0: "the number of proxies", 1: "the number of proxies (1 now)", 4: "4 proxies"} {
		want := "; set it to 1 times the tenants active at once, divided by " + among + ", or less if the service behind bears less: 1 unit (rounded up) a second is what plan free admits of one tenant"
		if got := CeilingAdvice(fits, proxies); !strings.HasSuffix(got, want) {
			t.Errorf("%d proxies: %s, want %s", proxies, got, want)
		}
	}
}
