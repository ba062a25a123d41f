package cluster

import (
	"slices"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
)

// This file holds the reader of a pipeline.

// onReadTimeout handles a read that timed out. It returns an error only if a reply is
// overdue.
func (p *pipeline) onReadTimeout() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	from := time.Now()
	if len(p.inFlight) == 0 && p.next != nil {
		return errReplaced
	}
	if len(p.inFlight) > 0 {
		if from.Sub(p.inFlight[0].sentAt) >= p.ioTimeout {
			return errOverdue
		}
		from = p.inFlight[0].sentAt
	}
	return p.conn.SetReadDeadline(from.Add(p.ioTimeout))
}

// read answers batches as their replies arrive. It returns the number of batches and the
// reason why no more can be read.
func (p *pipeline) read() (settled int, err error) {
	in := p.conn.in
	defer p.notifyAnswered()
	for ; ; settled++ {
		if err := in.Await(); err != nil {
			return settled, err
		}
		p.mu.Lock()
		if len(p.inFlight) == 0 {
			p.mu.Unlock()
			return settled, resp.ErrReply
		}
		b := p.inFlight[0]
		p.mu.Unlock()
		if err := p.readReplies(b, in); err != nil {
			return settled, err
		}
		p.mu.Lock()
		p.inFlight = append(p.inFlight[:0], p.inFlight[1:]...)
		if len(b.missing) > 0 {
			p.resend = append(p.resend, b) // the reader keeps its reference
		} else {
			p.release(b)
		}
		replaced := p.next != nil && len(p.inFlight) == 0
		p.mu.Unlock()
		if replaced {
			return settled + 1, errReplaced
		}
		p.trySend()
	}
}

// notifyAnswered notifies the callers of answered node requests.
func (p *pipeline) notifyAnswered() {
	for _, nr := range p.answered {
		nr.notifyDone()
	}
	clear(p.answered)
	p.answered = p.answered[:0]
}

// maxResends is how often a batch is sent again because its script was flushed: each time
// takes one more flush in the fraction of a millisecond between two commands.
const maxResends = 8

// readReplies reads the replies to a batch. Commands that failed with NOSCRIPT did not run:
// they are sent once more, after the script.
func (p *pipeline) readReplies(b *batch, in *resp.Reader) error {
	b.notify = p.notifyLater
	defer func() { b.notify = (*nodeRequest).notifyDone }()
	var last error
	failed := 0
	b.inTime = 0
	fail := func(err error, items []limit.Item) {
		kind := kindOf(err)
		if !kind.ofBucket() {
			last = err
		}
		if kind.countsAgainstNode() {
			failed++
		} else {
			b.inTime++
		}
		p.onFailure(err, items)
	}
	if err := b.readCommandReplies(in, fail); err != nil {
		return err
	}
	if b.missing != nil {
		b.resends++
		p.onScriptLoad()
		b.resend = resp.AppendCommand(b.resend[:0], "SCRIPT", "LOAD", p.script.text)
		for _, i := range b.missing {
			b.resend = append(b.resend, b.out[b.commands[i].start:b.commands[i].end]...)
		}
	}
	p.report(last)
	p.record(breaker.Outcome{OK: b.inTime, Failed: failed, Err: last})
	return nil
}

// readCommandReplies reads the replies to the commands that were sent, and notes in b.missing
// those that failed with NOSCRIPT. It calls fail with each call that stays undecided.
func (b *batch) readCommandReplies(in *resp.Reader, fail func(error, []limit.Item)) error {
	if len(b.missing) > 0 { // the reply to SCRIPT LOAD
		if _, err := in.Strings(); err != nil {
			return err
		}
	}
	again := b.missing
	b.missing = nil
	for i := range b.commands {
		if again != nil && !slices.Contains(again, i) {
			continue
		}
		if b.commands[i].route.asking {
			if _, err := in.Line(); err != nil {
				return err
			}
		}
		none, err := in.StartsWith("-NOSCRIPT")
		if err != nil {
			return err
		}
		if none && b.resends < maxResends {
			b.missing = append(b.missing, i)
			_, err = in.Line()
		} else {
			err = b.readReply(&b.commands[i], in, fail)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
