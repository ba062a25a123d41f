package config

import (
	"strings"
	"testing"
)

// TestEMFMistakes checks that mistakes in the settings of EMF get a sentence with the right form.
func TestEMFMistakes(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"--emf=/var/log/emf.json", `"/var/log/emf.json" is none of the choices; write stdout, file:/var/log/limitgate/emf.json or tcp:127.0.0.1:25888`},
		{"--emf=file:", "is none of the choices"},
		{"--emf=stderr", "is none of the choices"},
		{"--emf=tcp:25888", `"25888" is not host:port`},
		{"--emf=tcp:127.0.0.1:0", "the port must be a number from 1 to 65535"},
		{"--emf=udp:127.0.0.1:25888", "is none of the choices"},
		{"--emf-service= ", "a dimension of CloudWatch has characters of ASCII"},
		{"--emf-service=:a", "a dimension of CloudWatch has characters of ASCII"},
		{"--emf-service=café", "write for example limitgate-eu"},
		{"--emf-service=" + strings.Repeat("a", 256), "it has 256 bytes, at most 255"},
	} {
		if _, _, err := load([]string{row.args}, nil, ""); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%.60s: %v, want %s", row.args, err, row.want)
		}
	}
}
