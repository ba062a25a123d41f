package integration

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

const (
	// threadGoal bounds the threads: half of taskLimit, because a process at its limit
	// has no reserve.
	threadGoal = taskLimit / 2
	// answerGoal is the goal of the quick rows on any machine, however busy it is.
	answerGoal = 2 * time.Second
)

// hostileLimits never deny, and make replies of RL.LIMITS and RL.EXPLAIN long.
const hostileLimits = `
version: 1
default_plan: p
plans:
  p:
    - {id: all, by: [tenant], rate: 1000000000/s, on_error: open}
    - {id: op, by: [tenant, op], group: op, rate: 1000000000/s, on_error: open}
    - {id: payments, by: [tenant, op], group: a, when: {op: "POST /v1/payments*"}, rate: 600/m, on_error: closed}
    - {id: search, by: [tenant, user], group: b, when: {op: "GET /v1/search*"}, rate: 10/s, on_error: open}
    - {id: export, by: [tenant], group: c, when: {op: "GET /v1/export*"}, rate: 10/h, on_error: open}
shared:
  - {id: ip, by: [ip], rate: 1000000000/s, on_error: open}
`

// hostileRow is a group of hostile clients beside a bystander.
type hostileRow struct {
	name        string   // the behaviour if it is empty
	behaviours  []string // of the clients, in equal parts
	clients     int      // 0 for the default
	descriptors int      // 0 for descriptorLimit
	redis       bool     // the store is a Redis with many keys
	// room is how many connections --max-conns allows beside those of the clients. 0
	// keeps the default. If it is negative, newcomers are refused, and only existing
	// connections are served.
	room  int
	full  bool          // newcomers may be refused because there are no descriptors
	lasts time.Duration // 0 for the default
}

func (r *hostileRow) String() string {
	if r.name != "" {
		return r.name
	}
	return strings.Join(r.behaviours, ", ")
}

// hostileOutcome is the result of a row.
type hostileOutcome struct {
	row       hostileRow
	clients   int
	bystander *bystander
	stalls    []stall // of the machine
	usage     usage
	done      toll
	machine   time.Duration // CPU time of all processes
	died      error
	after     []string // differences to the state before, after the hostile clients have left
	logged    int      // bytes
}

// runHostileRow starts limitgate, and the clients for some time.
func runHostileRow(t *testing.T, by confinement, r hostileRow, clients int, lasts time.Duration) *hostileOutcome {
	t.Helper()
	o := &hostileOutcome{row: r, clients: cmp.Or(r.clients, clients)}
	p, store := r.serve(t, by, o.clients)
	defer quietGC()()
	b, err := startBystander(p.addr, r.full || r.room < 0)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.output())
	}
	o.bystander = b
	before, open, stalls := machineCPU(), p.descriptors(), watchStalls(t)
	watched := watchUsage(p)
	crowd := startCrowd(t, order{Addr: p.addr, Admin: p.admin, Parties: r.parties(o.clients), Time: cmp.Or(r.lasts, lasts)})
	o.done = crowd.end(t)
	if o.done.Connected < o.clients {
		t.Errorf("only %d of %d hostile clients came", o.done.Connected, o.clients)
	}
	b.end()
	o.stalls, o.usage, o.machine = stalls(), watched.end(), machineCPU()-before
	select {
	case err := <-p.exit:
		p.exit <- err
		o.died = fmt.Errorf("limitgate ended, %w: %s", cmp.Or(err, errors.New("with code 0")), reason(p.output()))
	default:
		o.after = aftermath(t, p, store, b, open)
	}
	o.logged = len(p.output())
	_ = p.stop(syscall.SIGKILL)
	return o
}

// serve starts limitgate for a row, and its store if that is a Redis.
func (r *hostileRow) serve(t *testing.T, by confinement, clients int) (p *proxy, node *redistest.Node) {
	t.Helper()
	var flags []string
	if r.redis {
		node = redistest.Start(t)
		const fill = "for i = 1, 100000 do redis.call('SET', 'of another:' .. i, i, 'EX', 600) end"
		node.CLI(t, "EVAL", fill, "0")
		flags = append(flags, "--redis", node.Addr)
	}
	if r.room != 0 {
		flags = append(flags, "--max-conns", fmt.Sprint(clients+r.room))
	}
	return serveConfined(t, by, cmp.Or(r.descriptors, descriptorLimit), writeLimits(t, hostileLimits), flags...), node
}

// parties divides clients among the behaviours of the row.
func (r *hostileRow) parties(clients int) []party {
	var all []party
	for i, name := range r.behaviours {
		n := clients*(i+1)/len(r.behaviours) - clients*i/len(r.behaviours)
		all = append(all, party{Behaviour: name, Clients: n})
	}
	return all
}

// quietGC stops garbage collection in this process until the returned function is called.
func quietGC() func() {
	runtime.GC()
	before := debug.SetGCPercent(-1)
	return func() { debug.SetGCPercent(before) }
}

// reason returns the line of a log with the reason for which a Go program ended.
func reason(log string) string {
	for line := range strings.Lines(log) {
		for _, sign := range []string{"fatal error:", "panic:", "runtime: failed", "runtime/cgo:"} {
			if strings.HasPrefix(line, sign) {
				return strings.TrimSpace(line)
			}
		}
	}
	return "its log does not say why"
}

// broken lists the violated conditions among those that must hold on every machine.
func (o *hostileOutcome) broken() []string {
	var broken []string
	add := func(is bool, format string, args ...any) {
		if is {
			broken = append(broken, fmt.Sprintf(format, args...))
		}
	}
	b := o.bystander
	add(o.usage.ended, "ended by the test at %d MiB", watchMost>>20)
	add(o.died != nil, "died: %v", o.died)
	add(b.checks.errors > 0, "%d checks failed: %v", b.checks.errors, b.checks.first)
	add(b.newcomers.errors > 0, "%d newcomers failed: %v", b.newcomers.errors, b.newcomers.first)
	add(o.usage.threads > threadGoal, "%d threads", o.usage.threads)
	add(o.usage.peak > memoryLimit, "%d MiB", o.usage.peak>>20)
	return append(broken, o.after...)
}

// TestHostile is the part of the hostile clients that takes half a minute. It has no
// latency goal that a busy machine misses.
func TestHostile(t *testing.T) {
	by := confine(t)
	for _, r := range []hostileRow{
		{behaviours: []string{"unread ECHO of 60 KB"}, clients: 300},
		{behaviours: []string{"unread COMMAND DOCS"}, clients: 100},
		{behaviours: []string{"a protocol error and staying"}, clients: 300},
		{behaviours: []string{"RL.RESET and close"}, clients: 100, redis: true, room: 50},
		// A newcomer that is always refused must be seen to wait for answerGoal.
		{behaviours: []string{"admin: idle keep-alive"}, clients: 600, descriptors: 512, lasts: 5 * time.Second},
		{name: "several", behaviours: []string{
			"half a command and silence", "a byte at a time", "RST in the midst", "silence in MULTI of 1,000", "half-close with unread replies",
		}, clients: 200},
	} {
		t.Run(r.String(), func(t *testing.T) {
			o := runHostileRow(t, by, r, 0, 2500*time.Millisecond)
			broken := o.broken()
			if worst := max(o.bystander.checks.quantile(1, nil), o.bystander.newcomers.quantile(1, nil)); worst > answerGoal {
				broken = append(broken, fmt.Sprintf("an answer took %s", worst))
			}
			for _, what := range broken {
				t.Errorf("beside %d hostile clients: %s", o.clients, what)
			}
		})
	}
}
