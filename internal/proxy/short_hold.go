package proxy

import (
	"fmt"
	"time"
)

// shortHoldsQuiet is the shortest time between two lines about a short TTL.
const shortHoldsQuiet = time.Hour

// warnOfShortHold logs, at most once an hour, that a client asked for a short TTL.
func (p *Proxy) warnOfShortHold(ttl time.Duration) {
	if p.shortHolds.Allow() {
		p.log.Warn("a short TTL: it is in milliseconds, as PX of Redis", "ttl_ms", ttl.Milliseconds(), "advice", fmt.Sprintf("after that time a slot is free again and a reservation final; if seconds were meant, send TTL %d", 1000*ttl.Milliseconds()))
	}
}
