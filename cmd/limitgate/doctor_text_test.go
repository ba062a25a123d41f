package main

import (
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/cluster/doctor"
)

// TestWriteReport compares the report text exactly, with colours and without.
func TestWriteReport(t *testing.T) {
	master := func(addr, slots string) doctor.MasterReport {
		return doctor.MasterReport{
			Addr: addr, Slots: slots, Replicas: []string{"r:1"}, Server: "Valkey", Version: "8.1.1",
			RoundTrip: doctor.RoundTrip{Exchanges: 100, Min: 18_249, Median: 1_234_567, P99: 999_499},
			Decision:  doctor.Decision{Calls: 1600, Alone: 17_250, Batched: 2_949, BatchSize: 64},
			Clock:     doctor.Clock{Offset: -1500 * time.Microsecond, Within: time.Microsecond},
		}
	}
	r := &doctor.Report{
		Verdict: doctor.SeverityFail, Kind: "cluster", Mode: cluster.ModePerSlot,
		Masters: []doctor.MasterReport{master("10.0.0.1:6379", "0-100 200 300-400 500-16383"), {Addr: "10.0.0.2:6379", Slots: "101-199"}},
		Findings: []doctor.Finding{
			{Severity: doctor.SeverityOK, Check: "mode", Nodes: []string{"10.0.0.1:6379", "10.0.0.2:6379"}, Text: "all of them"},
			{Severity: doctor.SeverityNote, Check: "tls", Text: "the store"},
			{Severity: doctor.SeverityWarn, Check: "memory", Nodes: []string{"10.0.0.1:6379"}, Text: "one of them " + strings.Repeat("and so on ", 12)},
			{Severity: doctor.SeverityFail, Check: "address", Nodes: []string{"a:1", "b:1"}, Text: "addresses"},
		},
	}
	const want = `store  cluster of 2 masters, Valkey 8.1.1
mode   per-slot: a batch takes a script call for each slot in it

MASTER         SLOTS               REPLICAS  ROUND TRIP min/median/p99  DECISION alone/batched  CLOCK
10.0.0.1:6379  0-100 and 3 ranges  1         18.2µs / 1.23ms / 999µs    17.3µs / 2.9µs          -1.5ms
10.0.0.2:6379  101-199             0         -                          -                       -

<32>ok    </>mode         all of them
<36>note  </>tls          the store
<33>warn  </>memory       10.0.0.1:6379: one of them and so on and so on and so on and so on and so on and
                   so on and so on and so on and so on and so on and so on and so on
<31>fail  </>address      a:1, b:1: addresses

limitgate does not work well with this store: mend what fails (fail 1, warn 1, note 1)
`
	for coloured, codes := range map[bool]*strings.Replacer{
		true:  strings.NewReplacer("</>", "\x1b[0m", "<3", "\x1b[3", ">", "m"),
		false: strings.NewReplacer("</>", "", "<32>", "", "<36>", "", "<33>", "", "<31>", ""),
	} {
		var b strings.Builder
		if err := writeReport(&b, r, coloured); err != nil {
			t.Fatal(err)
		}
		if want := codes.Replace(want); b.String() != want {
			t.Errorf("coloured %v, got\n%q\nwant\n%q", coloured, b.String(), want)
		}
	}
}

// TestNoStore: without a store the report has only the results of the addresses.
func TestNoStore(t *testing.T) {
	var b strings.Builder
	r := &doctor.Report{Verdict: doctor.SeverityFail, Findings: []doctor.Finding{{Severity: doctor.SeverityFail, Check: "address", Nodes: []string{"a:1"}, Text: "connection refused"}}}
	if err := writeReport(&b, r, false); err != nil {
		t.Fatal(err)
	}
	const want = "store  none found\n\nfail  address      a:1: connection refused\n\nlimitgate cannot use this store (fail 1, warn 0, note 0)\n"
	if b.String() != want {
		t.Errorf("got %q", b.String())
	}
}
