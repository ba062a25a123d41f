package config

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// LimitsSource is where the limits come from, and what became of them. Any
// number of goroutines may use it.
type LimitsSource struct {
	name  string
	read  func() ([]byte, error)
	opts  limit.CompileOptions
	apply func(*limit.Set)

	reading sync.Mutex // has the file read once at a time, which may take a second

	mu     sync.Mutex // guards the fields below, and apply
	set    *limit.Set
	loaded time.Time
	failed error // why the last reload changed nothing
	canary canary
	// rejected counts the reloads that failed.
	rejected int64
}

// LimitsStatus describes the limits in use.
type LimitsStatus struct {
	Version  string
	Source   string
	Trial    string // what is tried on some of the tenants, or ""
	Loaded   time.Time
	Error    string // why the newest version is not in use; empty when it is
	Rejected int64  // reloads that failed, or items that could not be used, since the start
	// Of limits in a table: items that came after newer ones, and how often the whole
	// table was read because something had been missed.
	OutOfOrder, Repairs int64
}

// OpenLimits loads the limits from the file at path. An empty path means the
// content in sample, which is called "built-in sample". It fails when they
// cannot be used; later reloads keep the last good ones instead.
func OpenLimits(path string, sample []byte, opts limit.CompileOptions) (*LimitsSource, []limit.Problem, error) {
	s := &LimitsSource{name: path, opts: opts, apply: func(*limit.Set) {}}
	s.read = func() ([]byte, error) { return ReadLimitsFile(path) }
	if path == "" {
		s.name = "built-in sample"
		s.read = func() ([]byte, error) { return sample, nil }
	}
	set, warnings, err := s.parse(nil)
	if err != nil {
		return nil, warnings, err
	}
	s.set, s.loaded = set, time.Now()
	return s, warnings, nil
}

// ReadLimitsFile reads a limits file for ParseLimits. The file must be a regular one, or a
// link to one, and no larger than MaxLimitsFileBytes.
func ReadLimitsFile(path string) ([]byte, error) {
	content, err := readRegular(path, limitsBounds)
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	return content, nil
}

// ReadLimits reads limits for ParseLimits from what is open already. Of what is too large
// it reads no more than ParseLimits needs to refuse it.
func ReadLimits(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, MaxLimitsFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	return content, nil
}

// parse reads the file. The set knows the ids that are given, to be tried beside another.
func (s *LimitsSource) parse(ids []string) (*limit.Set, []limit.Problem, error) {
	content, err := s.read()
	if err != nil {
		return nil, nil, err
	}
	opts := s.opts
	opts.IDs = ids
	return ParseLimits(s.name, content, opts)
}

// Set returns the limits in use.
func (s *LimitsSource) Set() *limit.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set
}

// OnChange makes later reloads hand new limits to apply, one at a time.
func (s *LimitsSource) OnChange(apply func(*limit.Set)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply = apply
}

// Reload loads the limits again. When that fails the last good ones stay.
func (s *LimitsSource) Reload() error {
	s.reading.Lock()
	defer s.reading.Unlock()
	next, err := s.parseNext()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = err
		s.rejected++
		return err
	}
	s.failed, s.loaded = nil, time.Now()
	s.use(s.canary.next(s.set, next))
	return nil
}

// parseNext reads the file for a set that can be tried beside the one in use, if it is to be.
func (s *LimitsSource) parseNext() (*limit.Set, error) {
	s.mu.Lock()
	ids := s.canary.ids(s.set) // a trial that ends meanwhile changes them not
	s.mu.Unlock()
	next, _, err := s.parse(ids)
	return next, err
}

// use makes a set the one in use. The caller holds mu.
func (s *LimitsSource) use(set *limit.Set) {
	s.set = set
	s.apply(set)
}

// Status describes the limits in use.
func (s *LimitsSource) Status() LimitsStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := LimitsStatus{Version: s.set.Version, Source: s.name, Loaded: s.loaded, Rejected: s.rejected}
	if s.failed != nil {
		st.Error = strings.ReplaceAll(s.failed.Error(), "\n", "; ")
	}
	s.canary.describe(s.set, &st)
	return st
}
