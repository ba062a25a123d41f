package servers

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/leftout"
)

func TestServerThatCannotStartReportsItsLog(t *testing.T) {
	_, err := startNode(t.TempDir(), singlePorts, []string{"--no-such-setting", "1"})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("start with a bad setting = %v, want an error that quotes it", err)
	}
}

func TestMissingBinaryNamesTheRemedy(t *testing.T) {
	t.Setenv(BinaryFolderVariable, t.TempDir())
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

func TestTakenPortIsDistinguished(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	taken := listener.Addr().(*net.TCPAddr).Port
	folder := t.TempDir()
	redis, err := redisServer()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := startProcess(redis, folder, 1, baseArgs(folder, taken)); !errors.Is(err, errPortTaken) {
		t.Errorf("start on a taken port = %v, want %v", err, errPortTaken)
	}
}

// TestTakenPortOfAnEmulator checks that a taken port is distinguished from other
// failures.
func TestTakenPortOfAnEmulator(t *testing.T) {
	leftout.WithoutAWS(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	binary, err := motoBinary()
	if err != nil {
		t.Fatal(err)
	}
	m := &emulator{folder: t.TempDir()}
	m.what, m.args = motoCommand(binary, listener.Addr().(*net.TCPAddr).Port)
	if err := m.run(); !errors.Is(err, errPortTaken) {
		t.Errorf("start an emulator on a taken port = %v, want %v", err, errPortTaken)
	}
}
