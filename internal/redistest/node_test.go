package redistest

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
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
	if node.answers() {
		t.Error("a stopped server is said to answer")
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
	_ = connection.SetReadDeadline(time.Now().Add(controlTimeout))
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

func TestServerThatCannotStartTellsItsLog(t *testing.T) {
	_, err := startNode(t.TempDir(), singlePorts, []string{"--no-such-setting", "1"})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("start with a bad setting = %v, want an error that quotes it", err)
	}
}

func TestMissingBinaryTellsWhatToDo(t *testing.T) {
	t.Setenv(binaryFolderVariable, t.TempDir())
	_, err := startNode(t.TempDir(), singlePorts, nil)
	if err == nil || !strings.Contains(err.Error(), "run make test, or set LIMITGATE_REDIS_BIN") {
		t.Errorf("start without redis-server = %v", err)
	}
}

func TestPortIsClaimedUntilReleased(t *testing.T) {
	claim, err := reservePort(singlePorts)
	if err != nil {
		t.Fatal(err)
	}
	only := portRange{first: claim.number, count: 1}
	if second, err := reservePort(only); err == nil {
		second.release()
		t.Error("a claimed port was given away")
	}
	claim.release()
	again, err := reservePort(only)
	if err != nil {
		t.Fatal(err)
	}
	again.release()
}

func TestTakenPortIsToldFromOtherTroubles(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	taken := listener.Addr().(*net.TCPAddr).Port
	folder := t.TempDir()
	if _, err := startProcess(folder, 1, baseArgs(folder, taken)); !errors.Is(err, errPortTaken) {
		t.Errorf("start on a taken port = %v, want %v", err, errPortTaken)
	}
}
