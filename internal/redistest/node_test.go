package redistest

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/servers"
)

func TestNodeKeepsNothingOnDiskAndListensOnLoopbackOnly(t *testing.T) {
	node := Start(t)
	for setting, want := range map[string]string{"save": "", "appendonly": "no", "bind": "127.0.0.1"} {
		if got := node.CLI(t, "CONFIG", "GET", setting); got != setting+"\n"+want {
			t.Errorf("CONFIG GET %s = %q, want %q", setting, got, want)
		}
	}
	if want := net.JoinHostPort("127.0.0.1", strconv.Itoa(node.Port)); node.Addr != want {
		t.Errorf("Addr = %s, want %s", node.Addr, want)
	}
}

func TestNodeTakesArguments(t *testing.T) {
	node := Start(t, "--maxmemory", "3mb", "--requirepass", "secret")
	if got := node.CLI(t, "CONFIG", "GET", "maxmemory"); got != "maxmemory\n3145728" {
		t.Errorf("CONFIG GET maxmemory = %q, want 3145728", got)
	}
	FlushAll(t, node)
}

func TestKilledNodeRestartsEmptyOnTheSamePort(t *testing.T) {
	node := Start(t, "--maxmemory", "3mb")
	if got := node.CLI(t, "SET", "color", "blue"); got != "OK" {
		t.Fatalf("SET = %q", got)
	}
	first := node.CLI(t, "INFO", "server")
	node.Kill()
	node.Kill()
	if connection, err := net.Dial("tcp", node.Addr); err == nil {
		_ = connection.Close()
		t.Fatalf("a killed server accepts connections")
	}
	node.Restart()
	if got := node.CLI(t, "GET", "color"); got != "" {
		t.Errorf("GET = %q after a crash, want nothing", got)
	}
	if got := node.CLI(t, "CONFIG", "GET", "maxmemory"); got != "maxmemory\n3145728" {
		t.Errorf("restarted server lost its arguments: %q", got)
	}
	if node.CLI(t, "INFO", "server") == first {
		t.Error("the same process answers after Kill and Restart")
	}
	node.Restart()
	if got := node.CLI(t, "PING"); got != "PONG" {
		t.Errorf("PING after Restart of a running server = %q", got)
	}
}

func TestStoppedNodeAnswersNothingUntilCont(t *testing.T) {
	node := Start(t)
	connection, err := net.Dial("tcp", node.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	node.Stop()
	if node.Answers() {
		t.Error("Answers is true for a stopped server")
	}
	if _, err := connection.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, len("+PONG\r\n"))
	_ = connection.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := connection.Read(reply); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a stopped server answered %q, %v", reply[:n], err)
	}
	node.Cont()
	_ = connection.SetReadDeadline(time.Now().Add(servers.ControlTimeout))
	if _, err := io.ReadFull(connection, reply); err != nil || string(reply) != "+PONG\r\n" {
		t.Errorf("reply after Cont = %q, %v", reply, err)
	}
}

func TestStoppedNodeCanBeKilledAndRestarted(t *testing.T) {
	node := Start(t)
	node.Stop()
	node.Restart()
	if got := node.CLI(t, "PING"); got != "PONG" {
		t.Errorf("PING = %q", got)
	}
}
