package redistest

import (
	"testing"
	"time"
)

func TestClockStepsWhileServersRun(t *testing.T) {
	clock := UseClock(t)
	node := Start(t)
	node.CLI(t, "SET", "k", "1", "PX", "60000")
	for _, test := range []struct{ by, off time.Duration }{
		{0, 0}, {-10 * time.Second, -10 * time.Second}, {time.Hour, time.Hour - 10*time.Second},
	} {
		clock.Step(test.by)
		script := node.CLI(t, "EVAL", "return redis.call('TIME')[1]", "0")
		early := time.Now().Add(test.off - time.Second)
		for _, got := range []time.Time{node.Time(t), unix(t, script)} {
			if late := time.Now().Add(test.off + time.Second); got.Before(early) || got.After(late) {
				t.Errorf("after a step of %s it is %s, want about %s", test.by, got, late)
			}
		}
	}
	if got := node.CLI(t, "EXISTS", "k"); got != "0" {
		t.Errorf("EXISTS = %s an hour after a key of a minute was written", got)
	}
}

func TestClockStandsWhereItIsSet(t *testing.T) {
	clock := UseClock(t)
	node := Start(t)
	for _, now := range []time.Time{time.UnixMicro(2_208_988_800_123_456), time.UnixMicro(2_208_988_800_123_457), time.UnixMicro(1)} {
		clock.Set(now)
		if got := node.Time(t); !got.Equal(now) {
			t.Errorf("the clock is set to %s, and the server's time is %s", now, got)
		}
	}
	clock.Set(time.UnixMicro(2_208_988_800_000_000))
	node.CLI(t, "SET", "k", "1", "PX", "60000")
	for i, at := range []int64{2_208_988_859_999_000, 2_208_988_860_001_000} {
		clock.Set(time.UnixMicro(at))
		if got, want := node.CLI(t, "EXISTS", "k"), []string{"1", "0"}[i]; got != want {
			t.Errorf("EXISTS = %s at %d, want %s", got, at, want)
		}
	}
}

func unix(t *testing.T, seconds string) time.Time {
	t.Helper()
	d, err := time.ParseDuration(seconds + "s")
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, 0).Add(d)
}
