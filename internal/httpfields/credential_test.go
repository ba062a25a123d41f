package httpfields_test

import (
	"testing"

	"github.com/limitgate/limitgate/internal/httpfields"
)

// TestCredential: headers with secrets are told from others by their names.
func TestCredential(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Api-Key": true, "apikey": true, "Authorization": true, "Cookie": true, "X-Auth-Token": true, "X-Access-Token": true,
		"X-Tenant": false, "X-Consumer-Username": false, "X-Organization-Id": false, "": false,
	} {
		if httpfields.IsCredential(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
}
