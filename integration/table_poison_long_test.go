//go:build long

package integration

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/limitgate/limitgate/controlplane/catalog"
	"github.com/limitgate/limitgate/internal/awstest"
)

func word(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// handMade is an item of version 2, as a person writes it by hand.
func handMade(key, body string, others ...any) map[string]types.AttributeValue {
	item := map[string]types.AttributeValue{
		"pk": word(key), "version": &types.AttributeValueMemberN{Value: "2"}, "updated_by": word("somebody"), "updated_at": word(time.Now().UTC().Format(time.RFC3339Nano)),
	}
	if body != "" {
		item["body"] = word(body)
	}
	for i := 0; i < len(others); i += 2 {
		name, value := others[i].(string), others[i+1]
		if value == nil {
			delete(item, name)
			continue
		}
		item[name] = value.(types.AttributeValue)
	}
	return item
}

// poison is a fault of invalid items that are written into the table by hand. Invalid
// ones change nothing, and changes without an actor are reverted.
var poison = tableFault{
	name: "items written by hand", lasts: 5 * time.Second,
	make: func(t *testing.T, s *tableScene) {
		snapshot, queue := filepath.Join(t.TempDir(), "snapshot"), s.relay.add(t)
		_ = s.follow(snapshot, queue).stop(syscall.SIGKILL)
		s.keepGood(t, "TENANT#poisoned0", "TENANT#poisoned1", "TENANT#poisoned2", "PLAN#silver", "SHARED")
		for _, item := range []map[string]types.AttributeValue{
			handMade("TENANT#poisoned0", `{"plan":"nowhere"}`),
			handMade("TENANT#poisoned1", ""),
			handMade("TENANT#poisoned2", "", "body", &types.AttributeValueMemberNULL{Value: true}),
			handMade("TENANT#poisoned3", `{"plan":"gold"}`, "version", nil),
			handMade("TENANT#poisoned4", `{"plan":"gold"}`, "version", word("7")),
			handMade("PLAN#silver", `[{"id":"tenant","by":["tenant"],"rate":"much"}]`),
			handMade("SHARED", `[]`),
			handMade("TENANT#", `{"plan":"gold"}`), handMade("note", "", "version", nil),
		} {
			s.putRaw(t, item)
		}
		s.deleteRaw(t, "TENANT#poisoned5")
		eventually(t, "changes without an actor are reverted", func() bool {
			back := 0
			for _, key := range []string{"TENANT#poisoned3", "TENANT#poisoned4", "TENANT#poisoned5"} {
				if it, ok, err := s.table.Get(t.Context(), key); err == nil && ok && it.Version == 2 && it.Actor == "control-plane" {
					back++
				}
			}
			return back == 3
		})
		// A proxy that starts now has the last good items only from its snapshot.
		late := s.follow(snapshot, queue)
		c := late.client()
		for tenant, limit := range s.untouched {
			if got, err := check(c, tenant, "-", "-"); err != nil || got.limit != limit {
				t.Errorf("a proxy that starts gives %s %d, not %d: %v", tenant, got.limit, limit, err)
			}
		}
		s.proxies = append(s.proxies, late)
	},
	heal: func(t *testing.T, s *tableScene) {
		for key, body := range s.good {
			if _, err := s.writer.put(t.Context(), key, string(body)); err != nil {
				t.Error(err)
			}
			delete(s.good, key)
		}
		s.deleteRaw(t, "TENANT#")
		s.deleteRaw(t, "note")
	},
	also: func(t *testing.T, s *tableScene, _ *tableOutcome) {
		for i, p := range s.proxies {
			if got := p.client().Do(t.Context(), "RL.CONFIG", "VERSION").String(); strings.Contains(got, "poisoned") || strings.Contains(got, "PLAN#") || strings.Contains(got, "SHARED") {
				t.Errorf("proxy %d still reports an error: %s", i, got)
			}
		}
	},
}

// forget makes the next write of an item read its version first, because another program
// writes it.
func (w *tenantWriter) forget(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.was[key] = -1
}

// keepGood records the valid content of items, and that they will soon have another
// version.
func (s *tableScene) keepGood(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		it, ok, err := s.table.Get(t.Context(), key)
		if err != nil || !ok {
			t.Fatalf("%s: %v", key, err)
		}
		s.good[key] = it.Body
		s.writer.forget(key)
	}
}

const (
	killings    = 20
	killedUntil = 800 * time.Millisecond // by then a proxy has written its snapshot after its start
)

// halfWritten is a fault of incomplete snapshots, made by hand and by killing proxies
// while they write: a snapshot is complete, or it is refused.
var halfWritten = tableFault{
	name: "half-written snapshots", heal: func(*testing.T, *tableScene) {},
	make: func(t *testing.T, s *tableScene) {
		dir := t.TempDir()
		whole, torn, killed, queue := filepath.Join(dir, "whole"), filepath.Join(dir, "torn"), filepath.Join(dir, "killed"), s.relay.add(t)
		_ = s.follow(whole, queue).stop(syscall.SIGKILL)
		content, err := os.ReadFile(whole)
		if err == nil {
			err = errors.Join(os.WriteFile(torn, content[:len(content)/2], 0o600), os.WriteFile(killed, content, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		s.refuse(t, torn, queue)
		late := s.follow(torn, queue)
		s.killWhileWriting(t, killed, s.relay.add(t))
		s.proxies = append(s.proxies, late)
	},
}

// refuse starts a proxy on a damaged snapshot without AWS, which must fail.
func (s *tableScene) refuse(t *testing.T, snapshot, queue string) {
	t.Helper()
	away := s.command(s.followArgs(snapshot, queue)...)
	away.Env = append(away.Env, awstest.Endpoint("http://127.0.0.1:1")...) // without a listener
	begun := time.Now()
	_, stderr, code := runCommand(t, nil, away)
	if code != 1 || !strings.Contains(stderr, "the snapshot is damaged") || !strings.Contains(stderr, snapshot) {
		t.Errorf("a proxy without AWS on a damaged snapshot: %d\n%s", code, stderr)
	}
	t.Logf("without AWS and with a damaged snapshot it ends after %s", time.Since(begun).Round(time.Millisecond))
}

// killWhileWriting kills a proxy repeatedly, every other time while it writes its
// snapshot, and checks that the snapshot is complete each time.
func (s *tableScene) killWhileWriting(t *testing.T, snapshot, queue string) {
	t.Helper()
	random := rand.New(rand.NewPCG(2, 3))
	for i := range killings {
		victim := s.command(s.followArgs(snapshot, queue)...)
		before := unfinished(t, snapshot)
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		atRandom := i%2 == 1
		at := time.Now().Add(2 * killedUntil)
		if atRandom {
			at = time.Now().Add(time.Duration(random.Int64N(int64(killedUntil))))
		}
		for time.Now().Before(at) && (atRandom || unfinished(t, snapshot) == before) {
			runtime.Gosched()
		}
		_ = victim.Process.Kill()
		_ = victim.Wait()
		if _, err := catalog.ReadSnapshot(snapshot, tableURL); err != nil {
			t.Errorf("after %d times: %v", i+1, err)
		}
	}
	n := unfinished(t, snapshot)
	t.Logf("%d kills, of them %d while a snapshot was written", killings, n)
	if n == 0 {
		t.Error("it was never killed while it wrote")
	}
}

// unfinished counts the temporary files beside a snapshot.
func unfinished(t *testing.T, snapshot string) int {
	t.Helper()
	found, err := filepath.Glob(snapshot + ".*")
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}
