package proxy

import "time"

// shortHoldsQuiet is the shortest time between two lines about a short TTL.
const shortHoldsQuiet = time.Hour

// warnOfShortHold logs, at most once an hour, that a client asked for a short TTL.
func (p *Proxy) warnOfShortHold(ttl time.Duration) {
	if p.shortHolds.Allow() {
		p.log.Warn("a client holds something for a short time: TTL is in milliseconds, as PX of Redis, so that 30 seconds are TTL 30000", "ttl_ms", ttl.Milliseconds())
	}
}
