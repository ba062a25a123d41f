package controlplane

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

type vetoes map[int64]string

func (v vetoes) Vetoes(context.Context) (map[int64]string, error) { return v, nil }

func (v vetoes) ForgetVeto(_ context.Context, revision int64) error {
	delete(v, revision)
	return nil
}

// TestRolloutsUpdate: a vetoed revision becomes a tombstone, and the gate is closed as
// soon as that is possible; other revisions stay. The veto of a revision whose
// tombstone has expired is deleted.
func TestRolloutsUpdate(t *testing.T) {
	f := &fleet{item: table.Item{Key: "REVISION#7", Version: 1, Body: []byte(`{}`)}}
	closed := 0
	r := Rollouts{Vetoes: vetoes{}, Items: f, Log: slog.New(slog.DiscardHandler), Close: func(_ context.Context, gate []byte, why string) error {
		if string(gate) != `{"revision":0,"percent":0,"threshold":0}` || why != "it denies" {
			t.Errorf("closed with %s, for %s", gate, why)
		}
		if closed++; closed < 3 {
			return errors.New("AppConfig is away")
		}
		return nil
	}}
	if err := r.Update(t.Context(), time.Now()); err != nil || f.item.Deleted {
		t.Errorf("without a veto: %v, %+v", err, f.item)
	}
	r.Vetoes = vetoes{7: "it denies"}
	if err := r.Update(t.Context(), time.Now()); err == nil || !f.item.Deleted || f.item.Actor != Actor {
		t.Errorf("with one: %v, %+v", err, f.item)
	}
	for i, after := range []time.Duration{time.Second, 3 * time.Second, 5 * time.Second, 8 * time.Second, time.Hour} { // pauses of 2 s and then 4 s
		if err := r.Update(t.Context(), time.Now().Add(after)); (err != nil) != (i == 1) {
			t.Errorf("again, after %s: %v", after, err)
		}
	}
	if closed != 3 {
		t.Errorf("closed %d times", closed)
	}
	f.item = table.Item{}
	if err := r.Update(t.Context(), time.Now()); err != nil || len(r.Vetoes.(vetoes)) != 0 {
		t.Errorf("of what is gone: %v, %v", err, r.Vetoes)
	}
}

// TestRolloutsLaterRevision: a gate that could not be closed is left unchanged once a
// later revision exists.
func TestRolloutsLaterRevision(t *testing.T) {
	f := &fleet{item: table.Item{Key: "REVISION#7", Version: 1, Body: []byte(`{}`)}}
	closed := 0
	r := Rollouts{Vetoes: vetoes{7: "it denies"}, Items: f, Log: slog.New(slog.DiscardHandler), Close: func(context.Context, []byte, string) error {
		closed++
		return errors.New("AppConfig is away")
	}}
	if err := r.Update(t.Context(), time.Now()); err == nil || closed != 1 {
		t.Errorf("%v, closed %d times", err, closed)
	}
	r.Items = &both{fleet: f, later: "REVISION#8"}
	for range 2 {
		if err := r.Update(t.Context(), time.Now().Add(time.Hour)); err != nil || closed != 1 {
			t.Errorf("with a later one: %v, closed %d times", err, closed)
		}
	}
}

// both is a fleet with another item.
type both struct {
	*fleet
	later string
}

func (b *both) Get(ctx context.Context, key string) (table.Item, bool, error) {
	if key == b.later {
		return table.Item{Key: key, Version: 1}, true, nil
	}
	return b.fleet.Get(ctx, key)
}
