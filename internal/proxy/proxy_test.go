package proxy

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/redistest"
)

// TestSampleWarning: the sample of limits is for trials. With a Redis a warning asks for limits.
func TestSampleWarning(t *testing.T) {
	const want = `level=WARN msg="no limits are set: every request is admitted or denied by the built-in sample of limits" default_plan=free advice="set --limits FILE`
	for args, warned := range map[string]bool{"": false, "--redis=a:1": true, "--redis=a:1 --limits=../../examples/limits.yaml": false} {
		settings, _, _, err := config.Load(strings.Fields(args), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		if _, err := openFile(settings, slog.New(slog.NewTextHandler(&log, nil)), nil); err != nil || strings.Contains(log.String(), want) != warned {
			t.Errorf("%q: %v, %s", args, err, log.String())
		}
	}
}

// TestNewFailure: a proxy that cannot listen returns the error, and leaves no connection to
// its store.
func TestNewFailure(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	node := redistest.Start(t)
	for name, args := range map[string][]string{
		"a port in use":    {"--listen", taken.Addr().String(), "--redis", node.Addr},
		"a missing secret": {"--webhook-url", "https://127.0.0.1/", "--webhook-secret-file", "/nowhere/secret", "--redis", node.Addr},
		"a missing limits": {"--limits", "/nowhere/limits.yaml", "--redis", node.Addr},
		"no Redis":         {"--redis", "127.0.0.1:1", "--redis-password-file", "/nowhere/password"},
	} {
		settings, _, _, err := config.Load(args, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := New(t.Context(), Options{Settings: settings, Log: slog.New(slog.DiscardHandler)}); err == nil || p != nil {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if text := node.CLI(t, "CLIENT", "LIST"); strings.Count(text, "\n") > 0 {
		t.Errorf("connections are left: %s", text)
	}
}
