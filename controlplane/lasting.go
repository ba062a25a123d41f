package controlplane

import "time"

// lastingEvery is how often an error that lasts is logged.
const lastingEvery = time.Minute

// lasting is an error that comes again with each try. One goroutine may use it.
type lasting struct {
	logged time.Time // zero while all is well
}

// due reports whether the end of a try is to be logged: an error at the beginning of a row of them,
// and each minute.
func (l *lasting) due(err error) bool {
	if err == nil {
		l.logged = time.Time{}
		return false
	}
	now := time.Now()
	if !l.logged.IsZero() && now.Sub(l.logged) < lastingEvery {
		return false
	}
	l.logged = now
	return true
}
