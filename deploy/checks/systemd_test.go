package checks

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// unit is a file of systemd: the values of each key, by section and key.
type unit map[string][]string

// readUnit reads a file of systemd.
func readUnit(t *testing.T, name ...string) unit {
	t.Helper()
	u, section := unit{}, ""
	for line := range strings.Lines(readText(t, name...)) {
		switch line = strings.TrimSpace(line); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			key, value, found := strings.Cut(line, "=")
			if !found {
				t.Errorf("%v: a line without a value: %s", name, line)
			}
			u[section+"."+key] = append(u[section+"."+key], value)
		}
	}
	return u
}

// TestUnit checks that the unit starts the program with settings that it accepts, and takes the
// rights that it does not need.
func TestUnit(t *testing.T) {
	u := readUnit(t, "deploy", "systemd", "limitgate.service")
	words := strings.Fields(u["Service.ExecStart"][0])
	if want := []string{"/usr/bin/limitgate", "serve", "--config", "/etc/limitgate/limitgate.yaml"}; !slices.Equal(words, want) {
		t.Errorf("it starts %v", words)
	}
	settings := printedSettings(t, nil, "--config", inRoot("deploy", "systemd", "limitgate.yaml"))
	if settings["limits"] != "/etc/limitgate/limits.yaml" {
		t.Errorf("the settings name the limits %q", settings["limits"])
	}
	for key, want := range map[string]string{
		"Type": "notify", "DynamicUser": "yes", "CapabilityBoundingSet": "", "ProtectSystem": "strict", "NoNewPrivileges": "yes",
		"MemoryDenyWriteExecute": "yes", "RestartPreventExitStatus": "64",
	} {
		if got := u["Service."+key]; len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if u["Service.ProcSubset"] != nil {
		t.Error("ProcSubset hides the length of the queue of connections")
	}
	if exit := limitgateExit(t, "serve", "--no-such-flag"); exit != 64 {
		t.Errorf("wrong settings exit with %d, and the unit goes by 64", exit)
	}
	if drain, stop := seconds(t, settings["shutdown_timeout"]), seconds(t, u["Service.TimeoutStopSec"][0]); stop <= drain {
		t.Errorf("systemd kills after %s, and a drain may take %s", stop, drain)
	}
}

// limitgateExit returns the exit code of the program.
func limitgateExit(t *testing.T, args ...string) int {
	t.Helper()
	command := exec.CommandContext(t.Context(), releasePath(t), args...)
	command.Env = []string{}
	_ = command.Run()
	return command.ProcessState.ExitCode()
}

// seconds returns the duration of a text.
func seconds(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestUnitWithRedis checks that the variables of the drop-in exist, and that the password is one
// of its credentials.
func TestUnitWithRedis(t *testing.T) {
	u := readUnit(t, "deploy", "systemd", "redis.conf")
	id, source, _ := strings.Cut(u["Service.LoadCredential"][0], ":")
	if !filepath.IsAbs(source) {
		t.Errorf("the credential comes from %q", source)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, id), []byte("secret\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	var environ []string
	for _, v := range u["Service.Environment"] {
		environ = append(environ, strings.ReplaceAll(v, "%d", folder))
	}
	settings := printedSettings(t, environ)
	if settings["redis.password_file"] != filepath.Join(folder, id) || settings["redis.addrs"] == "" || settings["redis.user"] == "" {
		t.Errorf("the settings are %q, %q and %q", settings["redis.password_file"], settings["redis.addrs"], settings["redis.user"])
	}
}

// TestUnitAnalysis lets systemd judge the unit, if this machine has it: it is right, and exposes no
// more than 1.5 of 10.
func TestUnitAnalysis(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("not judged: there is no systemd-analyze")
		return
	}
	path := filepath.Join(t.TempDir(), "limitgate.service")
	text := strings.ReplaceAll(readText(t, "deploy", "systemd", "limitgate.service"), "/usr/bin/limitgate", releasePath(t))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=15", "--no-pager", path).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// TestServiceNotifies: the program reports to the manager that it accepts clients, that it runs, and
// that it ends.
func TestServiceNotifies(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	if err := manager.SetReadDeadline(time.Now().Add(runPatience)); err != nil {
		t.Fatal(err)
	}
	service := exec.CommandContext(t.Context(), releasePath(t), "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	service.Env = []string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=300000"}
	log, err := service.StderrPipe()
	if err == nil {
		err = service.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	addr := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if found := listening.FindStringSubmatch(lines.Text()); found != nil {
				addr <- found[1]
			}
		}
	}()
	await(t, manager, "READY=1")
	conn, err := net.Dial("tcp", <-addr)
	if err != nil {
		t.Errorf("it is ready, and accepts no client: %v", err)
	} else {
		_ = conn.Close()
	}
	await(t, manager, "WATCHDOG=1")
	await(t, manager, "WATCHDOG=1")
	if err := service.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	await(t, manager, "STOPPING=1")
	if err := service.Wait(); err != nil {
		t.Errorf("end: %v", err)
	}
}

// await reads states until one comes.
func await(t *testing.T, manager *net.UnixConn, state string) {
	t.Helper()
	b := make([]byte, 100)
	for {
		n, err := manager.Read(b)
		if err != nil {
			t.Fatalf("%s does not come: %v", state, err)
		}
		if string(b[:n]) == state {
			return
		}
	}
}
