// Package program runs the programs that come with Redis.
package program

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/limitgate/limitgate/clients/go/steps"
)

// Command returns redis-cli or redis-benchmark with the options of the server and the
// credentials, from LIMITGATE_REDIS_BIN, if that is set.
func Command(name string, w steps.Wanted, args ...string) *exec.Cmd {
	host, port, _ := net.SplitHostPort(w.Addr)
	options := []string{"-h", host, "-p", port}
	if w.CA != "" {
		options = append(options, "--tls", "--cacert", w.CA)
	}
	if w.Cert != "" {
		options = append(options, "--cert", w.Cert, "--key", w.Key)
	}
	if w.User != "" {
		options = append(options, "--user", w.User, "-a", w.Password)
	}
	if w.RESP == "3" {
		options = append(options, "-3")
	}
	return exec.Command(path(name), append(options, args...)...)
}

// Version returns the version that the program prints.
func Version(name string) string {
	out, err := exec.Command(path(name), "--version").Output()
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(out))[1]
}

func path(name string) string {
	if folder := os.Getenv("LIMITGATE_REDIS_BIN"); folder != "" {
		return filepath.Join(folder, name)
	}
	return name
}

// Left fails unless so many units are left to a tenant. RL.PEEK returns the units that
// would be left after one more check.
func Left(w steps.Wanted, tenant string, want int) error {
	out, err := Command("redis-cli", steps.Wanted{Addr: w.Addr, Credentials: w.Credentials}, "--raw", "RL.PEEK", tenant, "-", "-", "1").Output()
	if err != nil {
		return err
	}
	lines := strings.Fields(string(out))
	if len(lines) != 7 || lines[2] != fmt.Sprint(want-1) {
		return fmt.Errorf("%d units should be left, RL.PEEK says %q", want, lines)
	}
	return nil
}
