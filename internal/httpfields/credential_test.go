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

// TestAddress: headers with addresses of clients are told from others by their names.
func TestAddress(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Forwarded-For": true, "x_forwarded_for": true, "X-Real-IP": true, "CF-Connecting-IP": true, "http_true_client_ip": true, "Forwarded": true,
		"X-Client-Id": false, "Relay-Ip": false, "X-Forwarded-Proto": false, "": false,
	} {
		if httpfields.IsAddress(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
}
