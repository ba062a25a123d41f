package servers

import "testing"

func TestFirstOwnersShareTheSlotsEvenly(t *testing.T) {
	cluster := &Cluster{masters: 3}
	for slot, want := range map[uint16]int{0: 0, 5460: 0, 5461: 1, 10921: 1, 10922: 2, 16383: 2} {
		if got := cluster.FirstOwner(slot); got != want {
			t.Errorf("slot %d was given to master %d, want %d", slot, got, want)
		}
	}
	if got := (&Cluster{masters: 1}).FirstOwner(16383); got != 0 {
		t.Errorf("the only master is %d", got)
	}
}
