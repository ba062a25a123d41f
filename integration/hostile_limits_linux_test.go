package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The limits of a process beside hostile clients: those of a small pod.
const (
	taskLimit       = 200
	descriptorLimit = 4096
	memoryLimit     = 512 << 20
	limitedProcs    = 2 // GOMAXPROCS, so that threads are comparable between machines
)

// limitedRole is the role of a process that takes on limits and executes another program.
const limitedRole = "limited"

func init() { roles[limitedRole] = becomeLimited }

// confinement describes how the limits of a process are enforced. Without a control group
// the test finds a resident size above memoryLimit afterwards.
type confinement struct {
	group *os.File // a control group of version 2, or nil
	uid   int      // the user, 0 for the one of this process
}

// confine returns the strictest confinement that this process may create.
func confine(tb testing.TB) confinement {
	tb.Helper()
	if group := makeControlGroup(tb); group != nil {
		return confinement{group: group}
	}
	if os.Getuid() != 0 {
		return confinement{}
	}
	// RLIMIT_NPROC does not bind root, and counts all tasks of a user. These user IDs are
	// otherwise unused; systemd takes its dynamic ones from their range.
	return confinement{uid: 61_184 + os.Getpid()%4_000}
}

func (c confinement) String() string {
	switch {
	case c.group != nil:
		return "by a control group"
	case c.uid != 0:
		return "tasks by RLIMIT_NPROC of a user of its own, memory by VmHWM afterwards"
	default:
		return "tasks and memory only measured, for want of root and of a control group"
	}
}

// serveConfined starts limitgate within limits, and waits until it listens.
func serveConfined(tb testing.TB, by confinement, descriptors int, limits string, flags ...string) *proxy {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	letOthersRead(tb, binaries.release, limits)
	args := []string{
		strconv.Itoa(descriptors), strconv.Itoa(by.uid), binaries.release,
		"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--limits", limits,
	}
	cmd := exec.Command(self, append(args, flags...)...)
	cmd.Env = append(plainEnvironment(), roleVariable+"="+limitedRole, fmt.Sprint("GOMAXPROCS=", limitedProcs))
	if by.group != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(by.group.Fd())}
	}
	p, found := launch(tb, cmd, listening)
	p.addr, p.admin = found[1], found[2]
	return p
}

// plainEnvironment returns the environment without the variables that affect the memory
// of a Go program.
func plainEnvironment() []string {
	var plain []string
	for _, setting := range os.Environ() {
		name, _, _ := strings.Cut(setting, "=")
		if name != "GOGC" && name != "GOMEMLIMIT" && name != "GODEBUG" && name != "GOMAXPROCS" {
			plain = append(plain, setting)
		}
	}
	return plain
}

// letOthersRead makes the temporary folders around files readable for other users.
func letOthersRead(tb testing.TB, paths ...string) {
	tb.Helper()
	const enter = 0o055
	top := filepath.Clean(os.TempDir())
	for _, path := range paths {
		for dir := filepath.Dir(path); strings.HasPrefix(dir, top+"/"); dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err == nil && info.Mode()&enter != enter {
				err = os.Chmod(dir, info.Mode()|enter)
			}
			if err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// becomeLimited is the role of a process that takes on limits and executes another
// program. Its arguments are the descriptors, the user, and the program with its
// arguments.
func becomeLimited() int {
	err := takeLimits(os.Args[1], os.Args[2])
	if err == nil {
		_ = os.Unsetenv(roleVariable)
		err = syscall.Exec(os.Args[3], os.Args[3:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "start limited process:", err)
	return 1
}

// takeLimits sets the limits of this process, and its user unless that is 0.
func takeLimits(descriptors, user string) error {
	files, err := strconv.ParseUint(descriptors, 10, 32)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(user)
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: files}); err != nil {
		return fmt.Errorf("limit descriptors: %w", err)
	}
	if uid == 0 {
		return nil
	}
	if err := syscall.Setrlimit(unix.RLIMIT_NPROC, &syscall.Rlimit{Cur: taskLimit, Max: taskLimit}); err != nil {
		return fmt.Errorf("limit tasks: %w", err)
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("leave groups: %w", err)
	}
	if err := syscall.Setgid(uid); err != nil {
		return fmt.Errorf("change group: %w", err)
	}
	if err := syscall.Setuid(uid); err != nil {
		return fmt.Errorf("change user: %w", err)
	}
	return nil
}
