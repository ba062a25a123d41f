package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/syncbuffer"
)

const (
	// functionTimeout is the time that a function has for an event, before it is killed.
	functionTimeout = 20 * time.Second
	runtimePath     = "/2018-06-01/runtime/"
)

// errExited is the result of an invocation whose process ends.
var errExited = errors.New("Runtime.ExitError")

// function is a function of AWS Lambda that runs the real binary. It has one process at a
// time, which processes one event at a time, and is restarted when it ends.
type function struct {
	tb      testing.TB
	command func() *exec.Cmd
	pending chan *invocation
	over    chan struct{}

	one sync.Mutex // held by an invocation

	mu     sync.Mutex // guards the fields below
	cmd    *exec.Cmd  // nil before the first process, and between two
	killed bool       // cmd was killed
	starts int

	out, err syncbuffer.Buffer // of all its processes
}

// invocation is an event and its result.
type invocation struct {
	id       string
	event    []byte
	deadline time.Time
	done     chan outcomeOf
}

// outcomeOf is the result of an event.
type outcomeOf struct {
	response []byte
	err      error
}

// function starts a function in a role, with NAME=value in addition to the variables that
// direct it to this AWS.
func (s *site) function(role string, env ...string) *function {
	s.tb.Helper()
	f := &function{tb: s.tb, pending: make(chan *invocation), over: make(chan struct{})}
	f.command = func() *exec.Cmd {
		cmd := exec.Command(binaries.lambda)
		cmd.Env = slices.Concat(cmd.Environ(), s.Environment(), []string{"LIMITGATE_ROLE=" + role, "AWS_MAX_ATTEMPTS=1"}, env)
		return cmd
	}
	var wg sync.WaitGroup
	wg.Go(f.run)
	s.tb.Cleanup(func() {
		close(f.over)
		f.kill()
		wg.Wait()
	})
	return f
}

// run starts one process after the other until the test is over.
func (f *function) run() {
	for {
		select {
		case <-f.over:
			return
		default:
		}
		b := &sandbox{function: f, gone: make(chan struct{})}
		b.serve()
		if err := b.live(); err != nil {
			f.tb.Errorf("the function ended by itself: %v\n%s", err, f.log())
			return
		}
	}
}

// kill kills the process, if there is one.
func (f *function) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cmd != nil {
		f.killed = true
		_ = f.cmd.Process.Kill()
	}
}

// invoke sends an event and waits for the reply, as AWS does in a synchronous invocation.
func (f *function) invoke(ctx context.Context, event []byte) ([]byte, error) {
	f.one.Lock()
	defer f.one.Unlock()
	i := &invocation{id: fmt.Sprint("invocation-", time.Now().UnixNano()), event: event, deadline: time.Now().Add(functionTimeout), done: make(chan outcomeOf, 1)}
	late := time.NewTimer(functionTimeout)
	defer late.Stop()
	pending := f.pending
	for {
		select {
		case pending <- i:
			pending = nil
		case o := <-i.done:
			return o.response, o.err
		case <-late.C:
			f.kill()
			return nil, errors.New("Sandbox.Timedout")
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-f.over:
			return nil, errExited
		}
	}
}

// log returns the logs of its processes.
func (f *function) log() string { return f.err.String() }

// printed returns the lines that its processes have printed, from which CloudWatch makes
// metrics.
func (f *function) printed() []string {
	return slices.Collect(strings.Lines(f.out.String()))
}

// started returns how many processes were started.
func (f *function) started() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.starts
}

// sandbox runs one process of a function, with its runtime API.
type sandbox struct {
	*function
	server *httptest.Server
	gone   chan struct{} // closed when the process has ended

	at      sync.Mutex // guards the fields below
	current *invocation
}

// serve starts the runtime API.
func (b *sandbox) serve() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+runtimePath+"invocation/next", b.next)
	mux.HandleFunc("POST "+runtimePath+"invocation/{id}/response", func(w http.ResponseWriter, r *http.Request) {
		b.end(w, r, func(body []byte) outcomeOf { return outcomeOf{response: body} })
	})
	mux.HandleFunc("POST "+runtimePath+"invocation/{id}/error", func(w http.ResponseWriter, r *http.Request) {
		b.end(w, r, func(body []byte) outcomeOf { return outcomeOf{err: fmt.Errorf("function error: %s", body)} })
	})
	b.server = httptest.NewServer(mux)
}

// live runs a process to its end. It returns an error unless the process was killed.
func (b *sandbox) live() error {
	cmd := b.command()
	cmd.Env = append(cmd.Env, "AWS_LAMBDA_RUNTIME_API="+b.server.Listener.Addr().String())
	cmd.Stdout, cmd.Stderr = &b.out, &b.err
	err := b.start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	killed := b.ended()
	close(b.gone)
	b.server.Close() // no event is taken from here on
	if b.current != nil {
		b.current.done <- outcomeOf{err: errExited}
	}
	if killed {
		return nil
	}
	return fmt.Errorf("exit: %w", err)
}

// start starts a process, and makes it known to kill.
func (f *function) start(cmd *exec.Cmd) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.over: // nothing would end it
		f.killed = true
		return errExited
	default:
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	f.cmd, f.killed = cmd, false
	f.starts++
	return nil
}

// ended records that there is no process, and reports whether it was killed.
func (f *function) ended() (killed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cmd = nil
	return f.killed
}

// next returns an event to the process, when there is one.
func (b *sandbox) next(w http.ResponseWriter, r *http.Request) {
	select {
	case i := <-b.pending:
		b.at.Lock()
		b.current = i
		b.at.Unlock()
		h := w.Header()
		h.Set("Lambda-Runtime-Aws-Request-Id", i.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(i.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-central-1:123456789012:function:limitgate")
		h.Set("Content-Type", "application/json")
		_, _ = w.Write(i.event)
	case <-b.gone:
	case <-r.Context().Done():
	}
}

// end records the result of an event.
func (b *sandbox) end(w http.ResponseWriter, r *http.Request, outcome func(body []byte) outcomeOf) {
	body, err := io.ReadAll(r.Body)
	b.at.Lock()
	defer b.at.Unlock()
	if err != nil || b.current == nil || b.current.id != r.PathValue("id") {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b.current.done <- outcome(body)
	b.current = nil
	w.WriteHeader(http.StatusAccepted)
}

// schedule invokes a function as its schedule does, and fails the test on an error.
func (f *function) schedule(t *testing.T) {
	t.Helper()
	event := map[string]any{
		"version": "0", "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa", "detail-type": "Scheduled Event", "source": "aws.events", "account": "123456789012",
		"time": time.Now().UTC(), "region": "eu-central-1", "resources": []string{"arn:aws:events:eu-central-1:123456789012:rule/limitgate"}, "detail": map[string]any{},
	}
	body, err := json.Marshal(event)
	if err == nil {
		_, err = f.invoke(t.Context(), body)
	}
	if err != nil {
		t.Fatalf("schedule: %v\n%s", err, f.log())
	}
}
