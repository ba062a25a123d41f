package controlplane

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

type reported []table.Report

func (r *reported) Reports(context.Context) ([]table.Report, error) { return *r, nil }

// TestAdmission: the shares of all cells are added up, window by window. The level is
// an alarm above one and a half, and a page above three, or when an alarm lasts.
func TestAdmission(t *testing.T) {
	var r reported
	a := Admission{Reports: &r, Window: time.Minute, Log: slog.New(slog.DiscardHandler)}
	at := func(window int64) time.Time { return time.Unix(60*(window+1), 0).Add(10 * time.Second) }
	say := func(window int64, shares ...float64) OverAdmission {
		t.Helper()
		r = nil
		for i, share := range shares {
			r = append(r, table.Report{Cell: string(rune('a' + i)), Window: window, Shares: map[string]float64{"x": share, "y": .1}})
		}
		if err := a.Update(t.Context(), at(window)); err != nil {
			t.Fatal(err)
		}
		return a.Latest(at(window))
	}
	if o := say(10, .5, .4, .3); math.Abs(o.Max-1.2) > 1e-9 || math.Abs(o.P99-1.2) > 1e-9 || o.Worst != "x" || o.Buckets != 2 || o.Cells != 3 || o.Level != LevelCalm {
		t.Errorf("measured %+v", o)
	}
	for window := int64(11); window < 22; window++ {
		want := LevelAlarm
		if window == 21 { // after ten minutes
			want = LevelPage
		}
		if o := say(window, .9, .9); o.Level != want {
			t.Errorf("in window %d it is %s, not %s", window, o.Level, want)
		}
	}
	if o := say(22, .5, .5); o.Level != LevelCalm {
		t.Errorf("afterwards it is %s", o.Level)
	}
	if o := say(23, 1, 1, 1.1); o.Level != LevelPage {
		t.Errorf("above three it is %s", o.Level)
	}
	r = reported{{Cell: "a", Window: 9999, Shares: map[string]float64{"x": 99}}, {Cell: "b", Window: 23, Shares: map[string]float64{"x": 1}}}
	if err := a.Update(t.Context(), at(23)); err != nil || a.Latest(at(23)).Window != 23 {
		t.Errorf("with a clock that is ahead it is %+v, %v", a.Latest(at(23)), err)
	}
	if o := a.Latest(at(23).Add(admissionOld)); o != (OverAdmission{}) {
		t.Errorf("long after it is %+v", o)
	}
	// A late report is waited for, but not for ever.
	r = reported{{Cell: "a", Window: 24, Shares: map[string]float64{"x": 1}}, {Cell: "b", Window: 23, Shares: map[string]float64{"x": 9}}}
	if err := a.Update(t.Context(), at(24)); err != nil || a.Latest(at(24)).Window != 23 {
		t.Errorf("without a late cell it is %+v, %v", a.Latest(at(24)), err)
	}
	if err := a.Update(t.Context(), at(24).Add(admissionLate)); err != nil || a.Latest(at(24)).Window != 24 || a.Latest(at(24)).Max != 1 {
		t.Errorf("when it is too late it is %+v, %v", a.Latest(at(24)), err)
	}
}
