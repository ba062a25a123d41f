//go:build long

package integration

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

const (
	hostileTime = 6 * time.Second // of each row
	// The goals for an otherwise idle machine.
	checkGoal    = 50 * time.Millisecond // of 99 in 100 checks
	newcomerGoal = time.Second           // a dropped SYN is sent again after that
)

var hostileClients = flag.Int("hostile-clients", 1_000, "how many hostile clients a row of TestLongHostile has")

// alone returns a row for each behaviour.
func alone(behaviours []behaviour) []hostileRow {
	var rows []hostileRow
	for _, b := range behaviours {
		rows = append(rows, hostileRow{behaviours: []string{b.name}})
	}
	return rows
}

// hostileRows are all rows, in the order of the table.
func hostileRows() []hostileRow {
	rows := []hostileRow{{name: "none, for comparison", behaviours: []string{"silence"}, clients: 1}}
	rows = append(rows, alone(unreadBehaviours)...)
	rows = append(rows, alone(malformedBehaviours)...)
	rows = append(rows, alone(leavingBehaviours)...)
	rows = append(rows, alone(idleBehaviours[1:])...)
	rows = append(rows, hostileRow{name: "Redis: RL.RESET and close", behaviours: []string{"RL.RESET and close"}, redis: true, room: 50})
	for _, name := range []string{"RL.RESET and half-close", "RL.COMMIT and close", "RL.PEEK and close", "RL.RESERVE and close", "RST in the midst"} {
		rows = append(rows, hostileRow{name: "Redis: " + name, behaviours: []string{name}, redis: true})
	}
	rows = append(rows,
		hostileRow{name: "silence up to the limit", behaviours: []string{"silence"}, room: 4},
		hostileRow{name: "silence beyond the limit", behaviours: []string{"silence"}, room: -10},
		hostileRow{name: "512 descriptors: silence", behaviours: []string{"silence"}, descriptors: 512, full: true},
		hostileRow{name: "512 descriptors: protocol errors", behaviours: []string{"a protocol error and staying"}, descriptors: 512, full: true},
		hostileRow{name: "512 descriptors: unread", behaviours: []string{"unread COMMAND DOCS"}, descriptors: 512, full: true},
		hostileRow{name: "512 descriptors: Redis", behaviours: []string{"silence"}, descriptors: 512, full: true, redis: true},
	)
	for _, b := range adminBehaviours {
		rows = append(rows, hostileRow{name: "512 descriptors: " + b.name, behaviours: []string{b.name}, clients: 600, descriptors: 512})
	}
	return append(rows,
		hostileRow{name: "several that read nothing", behaviours: []string{
			"unread ECHO of 60 KB", "unread COMMAND DOCS", "unread CLIENT LIST", "unread EXEC of COMMAND DOCS", "admin: unread metrics",
		}},
		hostileRow{name: "several that keep what they have", behaviours: []string{
			"a protocol error and staying", "half a command of 1 MiB", "silence after 1,000 checks", "silence in MULTI of 1,000", "admin: slow bodies",
		}},
		hostileRow{name: "Redis: several of all kinds", redis: true, behaviours: []string{
			"unread COMMAND DOCS", "a protocol error and staying", "RL.RESET and close", "RL.COMMIT and close", "RST in the midst",
			"connect and close", "a byte at a time", "admin: idle keep-alive",
		}},
	)
}

// TestLongHostile: beside hostile clients of every kind, a process with few tasks,
// descriptors and little memory serves a well-behaved client.
func TestLongHostile(t *testing.T) {
	by := confine(t)
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "hostile clients\tn\tp50\tp99\tless stalls\tmax\tnewcomer\terrors\trefused\tdegraded\tMiB\tthreads\t"+
		"CPU\tclients'\tothers'\tconnected\tsent MiB\tlog KiB\t")
	t.Cleanup(func() {
		_ = table.Flush()
		fmt.Printf("\nLimits: %d tasks, %d descriptors, %d MiB, GOMAXPROCS %d; %s.\n"+
			"A bystander checks every %s on one connection, and a newcomer connects every %s; %s a row; CPU in seconds.\n\n%s\n",
			taskLimit, descriptorLimit, memoryLimit>>20, limitedProcs, by, bystanderPace, newcomerPace, hostileTime, &text)
	})
	for _, r := range hostileRows() {
		t.Run(r.String(), func(t *testing.T) {
			o := runHostileRow(t, by, r, *hostileClients, hostileTime)
			broken := append(o.broken(), o.slow()...)
			fmt.Fprintln(table, o.line(broken))
			t.Log(o.line(broken))
			for _, what := range broken {
				t.Errorf("beside %d hostile clients: %s", o.clients, what)
			}
		})
	}
}

// slow lists the missed latency goals.
func (o *hostileOutcome) slow() []string {
	var slow []string
	if p99 := o.bystander.checks.quantile(0.99, nil); p99 > checkGoal {
		slow = append(slow, fmt.Sprintf("p99 %s", shortened(p99)))
	}
	if worst := o.bystander.newcomers.quantile(1, nil); worst > newcomerGoal {
		slow = append(slow, fmt.Sprintf("a newcomer waits %s", shortened(worst)))
	}
	return slow
}

// line returns the row's line of the table.
func (o *hostileOutcome) line(broken []string) string {
	verdict := "ok"
	if len(broken) > 0 {
		verdict = strings.Join(broken, "; ")
	}
	c, n := &o.bystander.checks, &o.bystander.newcomers
	return fmt.Sprintf("%s\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%.1f\t%.1f\t%.1f\t%d\t%d\t%d\t%s",
		&o.row, o.clients, shortened(c.quantile(0.5, nil)), shortened(c.quantile(0.99, nil)),
		shortened(c.quantile(0.99, o.stalls)), shortened(c.quantile(1, nil)), shortened(n.quantile(1, nil)),
		c.errors+n.errors, n.refused, c.degraded, o.usage.peak>>20, o.usage.threads,
		o.usage.cpu.Seconds(), o.done.CPU.Seconds(), (o.machine - o.usage.cpu - o.done.CPU).Seconds(),
		o.done.Connected, o.done.Sent>>20, o.logged>>10, verdict)
}

func shortened(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}
