package catalog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// every sets the interval of a digest.
func every(m table.Message, seconds int64) table.Message {
	m.Every = seconds
	return m
}

// TestSilence: when digests stop, a proxy reports it and reads the table by itself as
// long as the silence lasts. It uses changes within two minutes.
func TestSilence(t *testing.T) {
	for _, seconds := range []int64{0, 1, 10, 30, 1 << 40} {
		synctest.Test(t, func(t *testing.T) {
			source, updates, c, f := started(t, nil)
			following(t, f, func() {
				for range 3 {
					time.Sleep(10 * time.Second)
					updates.send(every(source.digest(), seconds))
				}
				if st := f.Status(); st.Err != nil || source.scanned() != 1 {
					t.Errorf("with a digest every %d s: %+v, %d scans", seconds, st, source.scanned())
				}
				for v := range int64(5) {
					body := []string{`{"plan": "pro"}`, `{"plan": "free"}`}[v%2]
					source.put(item("TENANT#acme", v+1, body))
					time.Sleep(2 * time.Minute)
					wantPlan(t, c, "acme", []string{"pro", "free"}[v%2])
					if f.Status().Err == nil {
						t.Error("a silence is not said")
					}
				}
				if n := source.scanned(); n > 1+10*3 {
					t.Errorf("%d scans in ten minutes", n)
				}
				updates.send(source.digest())
				if st := f.Status(); st.Err != nil {
					t.Errorf("after a digest: %+v", st)
				}
			})
		})
	}
}

// TestLostWhileItemsCome: a digest that differs is no evidence while items are
// arriving, but after a minute of that it is.
func TestLostWhileItemsCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, updates, c, f := started(t, nil)
		following(t, f, func() {
			lost := item("TENANT#lost", 1, `{"plan": "pro"}`)
			source.put(lost)
			for v := range int64(100) {
				moving := item("TENANT#moving", v+1, `{"plan": "pro"}`)
				source.put(moving)
				updates.send(of(moving))
				time.Sleep(time.Second)
				if v%10 == 0 {
					updates.send(every(source.digest(), 10))
				}
				if n := source.scanned(); v < 50 && n > 1 {
					t.Fatalf("%d scans after %d s", n, v)
				}
			}
			wantPlan(t, c, "lost", "pro")
			if n := source.scanned(); n > 3 {
				t.Errorf("%d scans", n)
			}
		})
	})
}

// TestForgedDigests: digests that never agree cause fewer and fewer readings of the
// table, but a message that is lost meanwhile is recovered within two minutes. Digests
// that always agree hide no change for longer than an hour or two.
func TestForgedDigests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, updates, c, f := started(t, nil)
		following(t, f, func() {
			forged := table.Digest{Count: 7, Sum: 7}
			for i := range 360 {
				time.Sleep(10 * time.Second)
				updates.send(table.Message{Digest: &forged, Every: 10})
				if i == 300 {
					source.put(acme)
				}
			}
			if n := source.scanned(); n < 30 || n > 60 {
				t.Errorf("%d scans in an hour of forged digests", n)
			}
			wantPlan(t, c, "acme", "pro")
			updates.send(source.digest())
			source.put(item("TENANT#acme", 2, `{"plan": "free"}`))
			for range 12 * 60 {
				time.Sleep(10 * time.Second)
				same := c.Digest()
				updates.send(table.Message{Digest: &same, Every: 10})
			}
			wantPlan(t, c, "acme", "free")
		})
	})
}

// TestMissingIsReadAgain: an item that disappears from the table soon disappears from a
// proxy, with digests that agree in the end, and without a reading after that.
func TestMissingIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, updates, c, f := started(t, nil)
		source.put(acme)
		following(t, f, func() {
			updates.send(of(acme), source.digest())
			source.remove(acme.Key)
			for range 7 {
				time.Sleep(10 * time.Second)
				updates.send(every(source.digest(), 10))
			}
			wantPlan(t, c, "acme", "free")
			n := source.scanned()
			if n > 4 {
				t.Errorf("%d scans", n)
			}
			for range 100 {
				time.Sleep(10 * time.Second)
				updates.send(every(source.digest(), 10))
			}
			if source.scanned() != n {
				t.Errorf("%d more scans", source.scanned()-n)
			}
		})
	})
}
