package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// refresh is how often the live line is drawn.
const refresh = time.Second

// part is one run of go test.
type part struct {
	all       bool     // no test may be left out
	arguments []string // of go test
	environ   []string
	log       io.Writer // gets all output
	screen    *screen

	mutex sync.Mutex // guards the fields below
	tally *tally
	done  int // packages
}

// errFailed is the error of a part with a failed test.
var errFailed = errors.New("tests failed")

// run runs go test to its end. It returns the result of the tests even with an error.
func (p *part) run() (result, error) {
	// The flag comes last, because go insists on -C as the first.
	command := exec.Command("go", slices.Concat([]string{"test"}, p.arguments, []string{"-json"})...)
	command.Env, command.Stderr = p.environ, os.Stderr
	events, err := command.StdoutPipe()
	if err != nil {
		return result{}, err
	}
	if err := command.Start(); err != nil {
		return result{}, fmt.Errorf("start go test: %w", err)
	}
	readErr := p.follow(events)
	_ = events.Close() // ends a go test that still writes
	if err := command.Wait(); err != nil && len(p.tally.result.Failed) == 0 {
		p.tally.result.Failed = []failure{{}}
	}
	r := p.tally.result
	for i, f := range r.Failed {
		r.Failed[i].Command = again(p.environ, p.arguments, f)
	}
	if readErr == nil && len(r.Failed) > 0 {
		readErr = errFailed
	}
	return r, readErr
}

// follow prints the results of events, until there are no more.
func (p *part) follow(events io.Reader) error {
	p.tally = newTally(p.all)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		p.draw(stop)
	}()
	defer func() {
		close(stop)
		<-stopped
	}()
	lines := bufio.NewReader(events) // a line has no bound: a test may print one of any length
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			if err := p.take(parseEvent(line)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
	}
}

// take logs and counts an event, and prints the result of a package that it ends.
func (p *part) take(e event) error {
	if _, err := io.WriteString(p.log, e.Output); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	p.mutex.Lock()
	over := p.tally.add(e)
	if over != nil {
		p.done++
	}
	p.mutex.Unlock()
	switch {
	case over != nil:
		p.screen.print(over.form())
	case e.Package == "" && e.ImportPath == "":
		p.screen.print(e.Output)
	}
	return nil
}

// draw refreshes the live line, and clears it in the end.
func (p *part) draw(stop <-chan struct{}) {
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			p.screen.show("")
			return
		case now := <-tick.C:
			p.mutex.Lock()
			line := progress(p.tally, p.done, now)
			p.mutex.Unlock()
			p.screen.show(line)
		}
	}
}
