package server

import (
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// threads returns the number of threads of this process.
func threads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(tasks)
}

// fill sends a command until the server takes no more, and reads no reply.
func fill(c *client, command string) {
	pipeline := strings.Repeat(command, 1+(256<<10)/len(command))
	for range 64 { // 16 MiB, far more than all buffers
		if c.SetWriteDeadline(time.Now().Add(100*time.Millisecond)) != nil {
			return
		}
		if _, err := io.WriteString(c.Conn, pipeline); err != nil {
			return
		}
	}
}

// fillAll runs fill for all clients at once.
func fillAll(clients []*client, command string) {
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { fill(c, command) })
	}
	wg.Wait()
}

// dialMany returns n clients.
func (r *run) dialMany(n int) (clients []*client) {
	r.t.Helper()
	for range n {
		clients = append(clients, r.dial())
	}
	return clients
}

// TestStuckClientsNeedNoThreads: a client that does not close its connection costs no
// thread, nor does one that does not read.
func TestStuckClientsNeedNoThreads(t *testing.T) {
	const many = 60
	for name, stick := range map[string]func(r *run){
		"refused": func(r *run) {
			for _, c := range r.dialMany(many) {
				c.send("*abc\r\n")
				c.expect("-ERR Protocol error: invalid multibulk length\r\n")
			}
		},
		"quit": func(r *run) {
			for _, c := range r.dialMany(many) {
				c.send("QUIT\r\n")
				c.expect("+OK\r\n")
			}
		},
		"not reading": func(r *run) { fillAll(r.dialMany(many), command("ECHO", strings.Repeat("x", 60<<10))) },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, Options{})
			bystander := r.dial()
			bystander.ping()
			before := threads(t)
			stick(r)
			bystander.ping()
			if now := r.server.Stats().Connections; now < many {
				t.Errorf("only %d connections are left", now)
			}
			if after := threads(t); after > before+many/4 {
				t.Errorf("%d clients cost %d threads", many, after-before)
			}
			r.stop()
		})
	}
}

// TestBufferedIsBounded: of the clients that do not read some are closed, but not the one
// that has little to read.
func TestBufferedIsBounded(t *testing.T) {
	opts := Options{MaxBuffered: 4 << 20}
	r := start(t, opts)
	modest := r.dial()
	modest.ping()
	if err := modest.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fill(modest, command("ECHO", strings.Repeat("m", 1000)))
	for _, c := range r.dialMany(80) {
		c.send(strings.Repeat("BIG\r\n", 800)) // 24 MiB of replies
	}
	await(t, "some are closed", func() bool { return r.server.Stats().Evicted > 0 })
	r.server.ledger.mu.Lock()
	total := r.server.ledger.total
	r.server.ledger.mu.Unlock()
	if total > int64(opts.MaxBuffered) {
		t.Errorf("%d bytes are held", total)
	}
	got := r.server.Stats()
	if got.Evicted > 70 || got.SlowReaders != 0 {
		t.Errorf("stats %+v", got)
	}
	modest.expect(command("ECHO", strings.Repeat("m", 1000)))
	r.stop()
}

// TestKeptIsBounded: the memory that sessions keep is counted, and half-sent huge
// commands too, and both are released when the connection ends.
func TestKeptIsBounded(t *testing.T) {
	r := start(t, Options{MaxBuffered: 4 << 20})
	modest := r.dial()
	modest.send("KEEP 1000\r\n")
	modest.expect("+QUEUED\r\n")
	for _, c := range r.dialMany(6) {
		c.send("KEEP 1000000\r\n")
	}
	await(t, "those that hold too much are closed", func() bool { return r.server.Stats().Evicted == 2 })
	half := "*20\r\n$4\r\nECHO\r\n" + strings.Repeat("$65000\r\n"+strings.Repeat("h", 65000)+"\r\n", 10)
	for _, c := range r.dialMany(6) {
		c.send(half)
	}
	await(t, "others are closed", func() bool { return r.server.Stats().Evicted > 2 })
	modest.ping()
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if total, open := r.server.ledger.total, len(r.server.ledger.open); total != 0 || open != 0 {
		t.Errorf("%d bytes of %d accounts are left", total, open)
	}
}

// TestRepliesInATaskQueueCount: a reply that waits for the next command of its batch
// counts.
func TestRepliesInATaskQueueCount(t *testing.T) {
	r := start(t, Options{})
	clients := r.dialMany(2 * waitingTasks)
	for _, c := range clients {
		c.send("LIGHTBIG\r\nBLOCK\r\n")
	}
	want := int64(len(clients) * len(bigReply))
	await(t, "all replies count", func() bool {
		l := &r.server.ledger
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.total >= want
	})
	close(r.desk.proceed)
	for _, c := range clients {
		_ = c.Close()
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if total := r.server.ledger.total; total != 0 {
		t.Errorf("%d bytes are left", total)
	}
}

// TestWaitingIsBounded: waiting commands are served by a bounded number of goroutines,
// all of them in the end; light commands do not wait for them.
func TestWaitingIsBounded(t *testing.T) {
	r := start(t, Options{})
	clients := r.dialMany(3 * waitingTasks)
	for _, c := range clients {
		c.send("BLOCK\r\nPING\r\n")
	}
	for range waitingTasks {
		receive(t, r.desk.busy)
	}
	for range 20 {
		c := r.dial()
		c.send("LIGHT\r\n")
		c.expect("+LIGHT\r\n")
	}
	if len(r.desk.busy) != 0 {
		t.Errorf("more than %d are served at once", waitingTasks)
	}
	close(r.desk.proceed)
	for _, c := range clients {
		c.expect("+DONE\r\n+PONG\r\n")
	}
}

// TestLongAreFew: few long commands run at once, and other waiting commands do not wait
// for them.
func TestLongAreFew(t *testing.T) {
	r := start(t, Options{})
	clients := r.dialMany(20)
	for _, c := range clients {
		c.send("PING\r\nWALK\r\nLIGHT\r\nPING\r\n")
		c.expect("+PONG\r\n")
	}
	receive(t, r.desk.busy)
	r.dial().ping()
	if walks := int(r.desk.walks.Load()); walks > longTasks() {
		t.Errorf("%d run at once", walks)
	}
	close(r.desk.proceed)
	for _, c := range clients {
		c.expect("+DONE\r\n+LIGHT\r\n+PONG\r\n")
	}
}

// TestHangUpEndsLongCommands: clients that pipeline long commands and disconnect leave
// the queue, and their commands are not run.
func TestHangUpEndsLongCommands(t *testing.T) {
	const many = 20
	r := start(t, Options{MaxConns: many})
	clients := r.dialMany(many)
	for _, c := range clients {
		c.send(strings.Repeat("WALK\r\n", 64))
	}
	receive(t, r.desk.busy)
	for _, c := range clients {
		c.Close()
	}
	await(t, "the places are free", func() bool { return r.server.Stats().Connections == 0 })
	r.dial().ping()
	if walks := r.desk.walks.Load(); walks > int64(4*longTasks()) {
		t.Errorf("%d walks for clients that left", walks)
	}
}

// TestResetEndsWaiting: a connection whose client is gone leaves the queue, also if the
// running command ignores its context.
func TestResetEndsWaiting(t *testing.T) {
	const many = waitingTasks + 20
	r := start(t, Options{MaxConns: many})
	clients := r.dialMany(many)
	for _, c := range clients {
		c.send("STUCK\r\n")
	}
	for range waitingTasks {
		receive(t, r.desk.busy)
	}
	for _, c := range clients {
		_ = c.Conn.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	await(t, "the queue is empty", func() bool { return r.server.Stats().Connections == waitingTasks })
	r.dial().Close()
	close(r.desk.proceed)
	await(t, "the places are free", func() bool { return r.server.Stats().Connections == 0 })
	if n := len(r.desk.busy); n != 0 {
		t.Errorf("%d were served for clients that are gone", n)
	}
}

// TestHalfCloseOfBoth: a client that has closed its side gets the replies to all commands
// except long ones.
func TestHalfCloseOfBoth(t *testing.T) {
	r := start(t, Options{})
	c := r.dial()
	c.send("LIGHT\r\nBLOCK\r\nLIGHT\r\nWALK\r\nLIGHT\r\nPING\r\n")
	receive(t, r.desk.busy)
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	other := r.dial() // once it has replies, the loop has seen the end
	other.ping()
	other.ping()
	close(r.desk.proceed)
	c.expectEnd("+LIGHT\r\n+DONE\r\n+LIGHT\r\n-ERR not run\r\n+LIGHT\r\n+PONG\r\n")
}
