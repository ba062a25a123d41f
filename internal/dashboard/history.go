package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
)

const (
	// keptLines bounds the lines of a History, mostLines those of one change and mostBytes each
	// line: together less than a megabyte.
	keptLines = 2000
	mostLines = 200
	mostBytes = 400
	// comparePause is how long a comparison of many tenants repeatedly pauses, so that decisions get
	// a processor.
	comparePause = time.Millisecond
)

// History keeps the last changes of the limits, as this proxy saw them since its start. It is safe
// for concurrent use.
type History struct {
	source string // of the limits
	begin  time.Time
	wake   chan struct{} // of size 1

	mu      sync.Mutex // guards the fields below
	last    *limit.Set // the last set that was compared
	next    *limit.Set // the set in use if it was not, or nil
	at      time.Time  // when next came into use
	changes []change   // the oldest first
	lines   int        // of changes
	count   int64      // of changes since the start
}

// change is a change of the limits: from one version to another, with a line for each limit that
// differs.
type change struct {
	at       time.Time
	from, to string
	trial    string // what became of limits on trial, "" if the change is one for all tenants
	lines    []limit.Difference
	more     int // lines that are not kept
}

// NewHistory returns an empty history of limits from a source, which begins with the set in use.
func NewHistory(source string, set *limit.Set) *History {
	return &History{source: source, begin: time.Now(), wake: make(chan struct{}, 1), last: set}
}

// Use records that a set came into use. It does not wait for the comparison, which Run makes: sets that
// come meanwhile are one change.
func (h *History) Use(set *limit.Set) {
	h.mu.Lock()
	h.next, h.at = set, time.Now()
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default: // Run is about to look
	}
}

// Run compares the sets that came into use until ctx ends.
func (h *History) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.wake:
			h.compare()
		}
	}
}

// compare records how the set in use differs from the last one.
func (h *History) compare() {
	h.mu.Lock()
	before, after, at := h.last, h.next, h.at
	h.next = nil
	h.mu.Unlock()
	if after == nil {
		return
	}
	for _, c := range changesOf(before, after) {
		c.at = at
		h.add(&c)
	}
	h.mu.Lock()
	h.last = after
	h.mu.Unlock()
}

// changesOf returns the changes from one set to the next: of the limits in use, and of those on trial.
func changesOf(before, after *limit.Set) (all []change) {
	add := func(trial, from, to string, was, is *limit.Set) bool {
		lines, more := limit.Differences(was, is, mostLines, func() { time.Sleep(comparePause) })
		if len(lines) > 0 {
			all = append(all, change{trial: trial, from: from, to: to, lines: lines, more: more})
		}
		return len(lines) > 0
	}
	inUse := add("", before.Version, after.Version, before, after)
	tried, was := before.Trial()
	switch next, share := after.Trial(); {
	case next != nil && (tried == nil || tried.Version != next.Version || was != share):
		add("on trial on "+limit.DescribeShare(share), after.Version, next.Version, after, next)
	case next == nil && tried != nil && !inUse: // otherwise they were promoted, or replaced
		add("taken back", tried.Version, after.Version, tried, after)
	}
	return all
}

// add keeps a change. Changes of tenants' overrides make room first: there may be many.
func (h *History) add(c *change) {
	for i := range c.lines {
		l := &c.lines[i]
		l.Limit = strings.Clone(l.Limit) // which may be a part of a whole file
		l.Text = strings.Clone(strings.ToValidUTF8(l.Text[:min(len(l.Text), mostBytes)], ""))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes, h.count = append(h.changes, *c), h.count+1
	for h.lines += len(c.lines); h.lines > keptLines; {
		i := max(0, slices.IndexFunc(h.changes[:len(h.changes)-1], func(c change) bool { return c.lines[0].Override }))
		h.lines -= len(h.changes[i].lines)
		h.changes = slices.Delete(h.changes, i, i+1)
	}
}

// Count returns how many changes were recorded since the start.
func (h *History) Count() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// LimitHistory is the history of one limit.
type LimitHistory struct {
	Limit   string        `json:"limit"`
	Source  string        `json:"source"`
	Since   time.Time     `json:"since"` // when the history begins
	Changes []LimitChange `json:"changes"`
}

// LimitChange is a change of one limit.
type LimitChange struct {
	At   int64  `json:"at_ms"`
	From string `json:"from"`
	To   string `json:"to"`
	// Trial says what became of limits on trial, or is "".
	Trial string   `json:"trial"`
	Lines []string `json:"lines"`
	// More is the number of lines of that change that are not kept. Some may be of this limit.
	More int `json:"more"`
}

// Of returns the changes of a limit, the newest first.
func (h *History) Of(id string) *LimitHistory {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := &LimitHistory{Limit: id, Source: h.source, Since: h.begin, Changes: []LimitChange{}}
	for i := range slices.Backward(h.changes) {
		c := &h.changes[i]
		one := LimitChange{At: c.at.UnixMilli(), From: c.from, To: c.to, Trial: c.trial, Lines: []string{}, More: c.more}
		for j := range c.lines {
			if c.lines[j].Limit == id {
				one.Lines = append(one.Lines, c.lines[j].Text)
			}
		}
		if len(one.Lines) > 0 || one.More > 0 {
			found.Changes = append(found.Changes, one)
		}
	}
	return found
}

// has reports whether a limit of the set in use, or of one on trial, has an id.
func (h *History) has(id string) bool {
	h.mu.Lock()
	sets := []*limit.Set{h.last, h.next}
	h.mu.Unlock()
	for _, set := range sets {
		if set == nil {
			continue
		}
		trial, _ := set.Trial()
		if set.LimitByID(id) != nil || trial != nil && trial.LimitByID(id) != nil {
			return true
		}
	}
	return false
}

// history answers with the history of a limit.
func (d *Dashboard) history(w http.ResponseWriter, r *http.Request, _ *users.User) {
	id := r.URL.Query().Get("limit")
	if id == "" {
		sendJSON(w, http.StatusBadRequest, map[string]string{"error": "the id of a limit is missing: /api/history?limit=ID"})
		return
	}
	found := d.opts.History.Of(id)
	if len(found.Changes) == 0 && !d.opts.History.has(id) {
		sendJSON(w, http.StatusNotFound, map[string]string{"error": fmt.Sprintf("there is no limit %.64q: /api/limits lists them", id)})
		return
	}
	sendJSON(w, http.StatusOK, found)
}
