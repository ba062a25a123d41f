package redistest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/servers"
)

// CLI runs redis-cli against the server and returns what it printed, without the last
// line feed. An error reply is printed like any other. The test fails only if the server
// is unreachable or does not answer.
func (n *Node) CLI(tb testing.TB, args ...string) string {
	tb.Helper()
	binary, err := servers.Binary("redis-cli")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(lasting(tb), servers.ControlTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, binary,
		append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(n.Port)}, args...)...)
	command.Env = append(os.Environ(), "REDISCLI_AUTH="+n.Password)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		tb.Fatalf("run redis-cli %q on %s: %v\n%s%s", args, n.Addr, err, output, &complaints)
	}
	return strings.TrimSuffix(string(output), "\n")
}
