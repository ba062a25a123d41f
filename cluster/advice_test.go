package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/resp"
)

// TestDescribe: failures are described with the next step.
func TestDescribe(t *testing.T) {
	const network = "; look whether the node runs: the backstop decides for it until it answers or a replica replaces it"
	for _, row := range []struct {
		err  error
		want string // its beginning
	}{
		{io.EOF, "the node closed the connection" + network},
		{fmt.Errorf("read replies: %w", io.ErrUnexpectedEOF), "read replies: the node closed the connection" + network},
		{&downError{io.EOF}, "send call: no connection: the node closed the connection" + network},
		{brokenError{}, "send call: the connection broke, and no new one answers" + network},
		{context.DeadlineExceeded, "context deadline exceeded; no answer within --decision-timeout: "},
		{resp.Error("READONLY You can't write against a read only replica."), "READONLY You can't write against a read only replica.; the node is a replica now: the proxy looks for its master "},
		{resp.Error("OOM command not allowed"), "OOM command not allowed; it has no memory left: raise its maxmemory, "},
		{resp.Error("NOAUTH Authentication required."), "it requires a password: set --redis-password-file, "},
		{&downError{resp.Error("NOAUTH Authentication required.")}, "it requires a password: set --redis-password-file, "},
		{errors.New("something else"), "something else"},
	} {
		if got := Describe(row.err); !strings.HasPrefix(got, row.want) {
			t.Errorf("%v: %s", row.err, got)
		}
	}
}
