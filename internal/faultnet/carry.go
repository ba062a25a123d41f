package faultnet

import (
	"net"
	"slices"
	"time"
)

const (
	segmentSize = 64 << 10
	// inFlight bounds the segments of a direction that are on their way; it is enough for
	// a delay.
	inFlight = 256
)

// segment is the bytes of one read.
type segment struct {
	bytes []byte
	due   time.Time
}

// carry forwards one direction of a connection and then closes both ends.
func (l *Link) carry(from, to *net.TCPConn, replies bool) {
	way, arrived := make(chan segment, inFlight), make(chan struct{})
	l.running.Go(func() {
		defer close(arrived)
		l.deliver(way, from, to)
	})
	l.take(from, way, arrived, replies)
	close(way)
	<-arrived
}

// take reads segments until there are no more, or deliver has ended.
func (l *Link) take(from *net.TCPConn, way chan<- segment, arrived <-chan struct{}, replies bool) {
	buffer := make([]byte, segmentSize)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			s := segment{bytes: slices.Clone(buffer[:n]), due: time.Now()}
			if replies {
				s.due = l.arrival()
			}
			select {
			case way <- s:
			case <-arrived:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// deliver writes segments when they are due, and closes both ends after the last.
func (l *Link) deliver(way <-chan segment, from, to *net.TCPConn) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
	}()
	for s := range way {
		if !l.until(s.due) || !l.pass() {
			return
		}
		if l.unlucky() {
			_ = from.SetLinger(0)
			_ = to.SetLinger(0)
			return
		}
		if _, err := to.Write(s.bytes); err != nil {
			return
		}
	}
	_ = l.pass() // a blocked link does not deliver the end either
}

// until waits for an instant, and reports false if the link is closed before.
func (l *Link) until(due time.Time) bool {
	left := time.Until(due)
	if left <= 0 {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.closed:
		return false
	}
}
