package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// SampleName is the name of the limits of a proxy that has no file of limits.
const SampleName = "built-in sample"

// LimitsSource holds the limits in use and reloads them from their file. It is safe for
// concurrent use.
type LimitsSource struct {
	name  string
	read  func() ([]byte, error)
	opts  limit.CompileOptions
	apply func(*limit.Set)

	reading  sync.Mutex            // serializes reads of the file, which may take a second, and guards warnings and warn
	warnings []limit.Problem       // about the file that came into use last
	warn     func([]limit.Problem) // gets those that a reload brings

	mu     sync.Mutex // guards the fields below, and apply
	set    *limit.Set
	loaded time.Time
	failed error // why the last reload failed
	canary canary
	// rejected is the number of reloads that failed.
	rejected int64
}

// LimitsStatus describes the limits in use.
type LimitsStatus struct {
	Version  string
	Source   string
	Trial    string // description of the limits on trial, or ""
	Loaded   time.Time
	Error    string // why the newest version is not in use; empty when it is
	Rejected int64  // reloads that failed, or invalid items, since the start
	// Of limits in a table: the number of items that came after newer ones, and of reads
	// of the whole table because something had been missed.
	OutOfOrder, Repairs int64
}

// OpenLimits loads the limits from the file at path. An empty path means the content of
// sample, with the name "built-in sample". OpenLimits fails when the limits cannot be
// used; later reloads keep the last good ones instead.
func OpenLimits(path string, sample []byte, opts limit.CompileOptions) (*LimitsSource, []limit.Problem, error) {
	s := &LimitsSource{name: path, opts: opts, apply: func(*limit.Set) {}, warn: func([]limit.Problem) {}}
	s.read = func() ([]byte, error) { return ReadLimitsFile(path) }
	if path == "" {
		s.name = SampleName
		s.read = func() ([]byte, error) { return sample, nil }
	}
	set, warnings, err := s.parse(nil)
	if err != nil {
		return nil, warnings, err
	}
	s.set, s.loaded, s.warnings = set, time.Now(), warnings
	return s, warnings, nil
}

// tableOfARN returns the name of the table that an ARN is of, or TABLE.
func tableOfARN(arn string) string {
	if _, name, found := strings.Cut(arn, ":table/"); found && tableName.MatchString(name) {
		return name
	}
	return "TABLE"
}

// tableName matches the names that DynamoDB has for tables.
var tableName = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)

// ReadLimitsFile reads a limits file for ParseLimits. The file must be a regular one, or
// a link to one, and no larger than MaxLimitsFileBytes.
func ReadLimitsFile(path string) ([]byte, error) {
	switch table, isTable := strings.CutPrefix(path, LimitsTablePrefix); {
	case isTable && table == "":
		return nil, "read limits: " + NoTableName
	case isTable:
		return nil, fmt.Errorf("read limits: %s is a table, and a file is needed: limitgate limits pull %[1]s > limits.yaml writes one", plainTable(table))
	case strings.HasPrefix(path, "arn:"):
		return nil, fmt.Errorf("read limits: %s is no file; a table is written %s%s", Quote(path), LimitsTablePrefix, tableOfARN(path))
	case strings.HasPrefix(path, "file://"):
		return nil, errors.New("read limits: a file is named by its path: leave out file://")
	case strings.HasPrefix(path, "dynamodb:") || strings.HasPrefix(path, "dynamo:") || strings.Contains(path, "://"):
		return nil, fmt.Errorf("read limits: %s is no file; a table is written %sTABLE", Quote(path), LimitsTablePrefix)
	}
	content, err := readRegular(path, limitsBounds)
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder: name a file; a folder of Envoy's limits is for limitgate serve --rls-config", Quote(path))
	}
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	if bytes.HasPrefix(content, []byte("\x1f\x8b")) {
		return nil, fmt.Errorf("read limits: %s is a gzip file, and limits are text: limits are named by --limits, and a log is the last argument of limitgate replay", Quote(path))
	}
	return content, nil
}

// plainTable returns the name of a table with its prefix for a message.
func plainTable(name string) string { return LimitsTablePrefix + fmt.Sprintf("%.64s", plain(name)) }

// ReadLimits reads limits for ParseLimits from an open file. Of content that is too large
// it reads no more than ParseLimits needs to reject it.
func ReadLimits(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, MaxLimitsFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	return content, nil
}

// parse reads the file. The set includes the given limit ids, so that it can be tried beside
// another set.
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

// OnChange makes later reloads pass new limits to apply, one at a time.
func (s *LimitsSource) OnChange(apply func(*limit.Set)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply = apply
}

// OnWarnings makes later reloads pass to warn, one call at a time, the warnings about a file in use that the file before had not.
func (s *LimitsSource) OnWarnings(warn func([]limit.Problem)) {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.warn = warn
}

// Reload loads the limits again. If that fails, the last good ones stay. A file whose version was taken
// back is an error.
func (s *LimitsSource) Reload() error {
	s.reading.Lock()
	defer s.reading.Unlock()
	next, warnings, err := s.parseNext()
	if err := s.take(next, err); err != nil {
		return err
	}
	added := newWarnings(s.warnings, warnings)
	s.warnings = warnings
	s.warn(added)
	return nil
}

// take uses the set of a file that was read, or remembers why it could not be. It returns why another one is in use.
func (s *LimitsSource) take(next *limit.Set, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = err
		s.rejected++
		return err
	}
	s.failed, s.loaded = nil, time.Now()
	s.use(s.canary.next(s.set, next))
	if s.canary.held != "" {
		return fmt.Errorf("%s; change the file, or restore that of version %s, which is in use", s.canary.heldBack(), s.set.Version)
	}
	return nil
}

// parseNext reads the file. With a canary the set can be tried beside the one in use.
func (s *LimitsSource) parseNext() (*limit.Set, []limit.Problem, error) {
	s.mu.Lock()
	ids := s.canary.ids(s.set) // a trial that ends meanwhile does not change them
	s.mu.Unlock()
	return s.parse(ids)
}

// lineNumber matches the places in the text of a warning.
var lineNumber = regexp.MustCompile(`\bline \d+`)

// newWarnings returns the warnings of after that before has not, wherever they stand.
func newWarnings(before, after []limit.Problem) (added []limit.Problem) {
	type warning struct{ field, text string }
	of := func(p limit.Problem) warning { return warning{p.Field, lineNumber.ReplaceAllString(p.Text, "line")} }
	known := map[warning]bool{}
	for _, p := range before {
		known[of(p)] = true
	}
	for _, p := range after {
		if !known[of(p)] {
			added = append(added, p)
		}
	}
	return added
}

// use sets the set in use. The caller holds mu.
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
