package controlplane

import (
	"log/slog"
	"time"
)

// lastingEvery is how often an error that lasts is logged.
const lastingEvery = time.Minute

// lasting logs an error that comes again with each try: at its beginning, each minute, and when it
// is over. One goroutine may use it.
type lasting struct {
	tries  int // in a row that have failed
	logged time.Time
}

// note notes how a try ended.
func (l *lasting) note(log *slog.Logger, what string, err error) {
	if err == nil {
		if l.tries > 0 {
			log.Info("it is well again: "+what, "tries", l.tries)
		}
		*l = lasting{}
		return
	}
	l.tries++
	if now := time.Now(); l.tries == 1 || now.Sub(l.logged) >= lastingEvery {
		l.logged = now
		log.Error(what, "error", err, "tries", l.tries)
	}
}
