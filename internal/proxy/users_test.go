package proxy

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
)

// TestOpenProxiesAreReported checks the warning of a proxy that other hosts can reach and that has
// neither users nor client certificates.
func TestOpenProxiesAreReported(t *testing.T) {
	for want, settings := range map[bool][]config.Settings{
		true:  {{Listen: "0.0.0.0:6380", UnsafeOpen: true}},
		false: {{Listen: "127.0.0.1:6380"}, {Listen: "0.0.0.0:6380", TLSClientCA: "ca.pem"}},
	} {
		for _, s := range settings {
			var log bytes.Buffer
			if u, err := openUsers(t.Context(), &s, slog.New(slog.NewTextHandler(&log, nil))); u != nil || err != nil {
				t.Fatal(u, err)
			}
			if got := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), "set --users"); got != want {
				t.Errorf("%+v: %s", s, log.String())
			}
		}
	}
}
