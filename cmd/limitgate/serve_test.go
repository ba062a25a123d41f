package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// TestBanner: the first command to type has a tenant and an op of the limits.
func TestBanner(t *testing.T) {
	ink := filepath.Join(t.TempDir(), "ink.yaml")
	content := "version: 1\nplans:\n  team:\n    - {id: a, by: [tenant], rate: 10/s, when: {op: \"GET /pages*\"}}\ntenants:\n  inkwell: {plan: team}\n"
	if err := os.WriteFile(ink, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for limits, want := range map[string]string{
		sampleLimits: `acme "POST /v1/payments" 203.0.113.7 1`,
		ink:          `inkwell "GET /pages" 203.0.113.7 1`,
	} {
		ctx, end := context.WithCancel(t.Context())
		var out, log syncbuffer.Buffer
		code := make(chan int, 1)
		go func() {
			env := &environment{stdin: strings.NewReader(""), stdout: &out, stderr: &log}
			code <- runServe(ctx, env, []string{"--listen", "127.0.0.1:0", "--admin", "", "--limits", limits})
		}()
		redistest.Eventually(t, 20*time.Second, "a banner", func() bool { return strings.Count(out.String(), want+"\n") == 2 })
		end()
		if c := <-code; c != exitOK || !strings.Contains(out.String(), "redis-cli -h 127.0.0.1 -p ") || !strings.Contains(out.String(), " check --addr 127.0.0.1:") {
			t.Errorf("exit %d\n%s%s", c, out.String(), log.String())
		}
	}
}
