package cluster

import (
	"slices"
	"time"

	"github.com/limitgate/limitgate/breaker"
	"github.com/limitgate/limitgate/limit"
)

// What a lane's goroutine does with the replies of its node.

// patience decides what a read that timed out means: nothing, unless a reply is
// overdue.
func (l *lane) patience() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := time.Now()
	if len(l.away) > 0 {
		if from.Sub(l.away[0].sentAt) >= l.ioTime {
			return errOverdue
		}
		from = l.away[0].sentAt
	}
	return l.link.SetReadDeadline(from.Add(l.ioTime))
}

// read settles flights as their replies arrive. It returns how many, and why no
// more can be read.
func (l *lane) read() (settled int, err error) {
	in := l.link.in
	defer l.tellAnswered()
	for ; ; settled++ {
		if err := in.await(); err != nil {
			return settled, err
		}
		l.mu.Lock()
		if len(l.away) == 0 {
			l.mu.Unlock()
			return settled, errReply
		}
		f := l.away[0]
		l.mu.Unlock()
		if err := l.settle(f, in); err != nil {
			return settled, err
		}
		l.mu.Lock()
		l.away = append(l.away[:0], l.away[1:]...)
		if len(f.missing) > 0 {
			l.again = append(l.again, f) // its reader stays
		} else {
			l.leave(f)
		}
		l.mu.Unlock()
		l.pump()
	}
}

// tellAnswered tells the callers of answered tickets.
func (l *lane) tellAnswered() {
	for _, t := range l.answered {
		t.finished()
	}
	clear(l.answered)
	l.answered = l.answered[:0]
}

// maxHeals is how often a flight is sent again because its script was flushed: each time
// it takes one more flush in the fraction of a millisecond between two commands.
const maxHeals = 8

// settle reads the replies to a flight. Commands that found no script did not
// run: they are to be sent once more, behind the script.
func (l *lane) settle(f *flight, in *replies) error {
	f.finish = l.finishLater
	defer func() { f.finish = (*ticket).finished }()
	var last error
	failed := 0
	f.inTime = 0
	tell := func(err error, items []limit.Item) {
		kind := kindOf(err)
		if !kind.ofBucket() {
			last = err
		}
		if kind.sick() {
			failed++
		} else {
			f.inTime++
		}
		l.tell(err, items)
	}
	if len(f.missing) > 0 { // it was loaded first
		if _, err := in.words(); err != nil {
			return err
		}
	}
	again := f.missing
	f.missing = nil
	for i := range f.commands {
		if again != nil && !slices.Contains(again, i) {
			continue
		}
		if f.commands[i].way.asking {
			if _, err := in.line(); err != nil {
				return err
			}
		}
		none, err := in.startsWith("-NOSCRIPT")
		if err != nil {
			return err
		}
		if none && f.heals < maxHeals {
			f.missing = append(f.missing, i)
			_, err = in.line()
		} else {
			err = f.settle(&f.commands[i], in, tell)
		}
		if err != nil {
			return err
		}
	}
	if f.missing != nil {
		f.heals++
		l.loads()
		f.heal = appendCommand(f.heal[:0], "SCRIPT", "LOAD", l.script.text)
		for _, i := range f.missing {
			f.heal = append(f.heal, f.out[f.commands[i].start:f.commands[i].end]...)
		}
	}
	l.report(last)
	l.record(breaker.Outcome{OK: f.inTime, Failed: failed, Err: last})
	return nil
}
