package awstest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/limitgate/limitgate/internal/leftout"
	"github.com/limitgate/limitgate/internal/servers"
)

// accountHeader is the header by which moto selects the account of a request.
const accountHeader = "X-Moto-Account-Id"

// The emulators that tests share: in moto each test has an account of its own, in DynamoDB
// Local a key.
var (
	sharedMoto   = sharing[*servers.Moto]{name: "moto", start: servers.StartMoto}
	sharedTables = sharing[*servers.DynamoDBLocal]{name: "DynamoDB Local", start: servers.StartDynamoDBLocal}
)

// Share is Start with an emulator that other tests use, too, and an account of its own
// in it. The test must not kill the emulator.
func Share(tb testing.TB) *AWS {
	tb.Helper()
	leftout.WithoutAWS(tb)
	moto, number := sharedMoto.use(tb)
	return lead(tb, &AWS{Moto: moto, Tables: "moto", tables: moto.Addr, key: "awstest", account: fmt.Sprintf("%012d", number)})
}

// ShareAtomic is StartAtomic with a shared emulator, see [Share].
func ShareAtomic(tb testing.TB) *AWS {
	tb.Helper()
	return Share(tb).atomic(tb)
}

// Sharing runs the tests of a package with shared emulators that stay between tests.
// Without it they end whenever no test uses them.
type Sharing struct{ *testing.M }

// Run runs the tests, ends the shared emulators and returns the exit code.
func (s Sharing) Run() int {
	sharedMoto.keep()
	sharedTables.keep()
	code := s.M.Run()
	if err := errors.Join(sharedMoto.endKeeping(), sharedTables.endKeeping()); err != nil {
		fmt.Fprintln(os.Stderr, "end shared emulators:", err)
		return 1
	}
	return code
}

// sharing is an emulator that its first user starts.
type sharing[T interface{ Close() error }] struct {
	name  string
	start func(folder string) (T, error)

	mutex   sync.Mutex // guards the fields below
	kept    bool       // stays without users
	users   int
	uses    int // so far
	running *T
	folder  string // of its log
}

// use returns the emulator until the test is over, and the number of this use.
func (s *sharing[T]) use(tb testing.TB) (T, int) {
	tb.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.begin(); err != nil {
		tb.Fatalf("start %s: %v", s.name, err)
	}
	s.users++
	s.uses++
	tb.Cleanup(func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.users--
		if err := s.endUnused(); err != nil {
			tb.Errorf("end %s: %v", s.name, err)
		}
	})
	return *s.running, s.uses
}

// begin starts the emulator unless it runs. The caller holds the mutex.
func (s *sharing[T]) begin() error {
	if s.running != nil {
		return nil
	}
	folder, err := os.MkdirTemp("", "limitgate-awstest-")
	if err != nil {
		return err
	}
	running, err := s.start(folder)
	if err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	s.running, s.folder = &running, folder
	return nil
}

// endUnused ends an emulator without users. The caller holds the mutex.
func (s *sharing[T]) endUnused() error {
	if s.running == nil || s.kept || s.users > 0 {
		return nil
	}
	err := errors.Join((*s.running).Close(), os.RemoveAll(s.folder))
	s.running = nil
	return err
}

// keep makes the emulator stay without users from now on.
func (s *sharing[T]) keep() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.kept = true
}

// endKeeping makes the emulator end with its last user, at once if there is none.
func (s *sharing[T]) endKeeping() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.kept = false
	return s.endUnused()
}
