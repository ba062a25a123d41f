package proxy

import "time"

// shortHoldsQuiet is the shortest time between two lines about a short TTL.
const shortHoldsQuiet = time.Hour

// warnOfShortHold logs, at most once an hour, that a client asked for a short TTL.
func (p *Proxy) warnOfShortHold(ttl time.Duration) {
	if p.shortHolds.Allow() {
		p.log.Warn("TTL below half a second: it is in milliseconds, as PX of Redis", "ttl_ms", ttl.Milliseconds())
	}
}
