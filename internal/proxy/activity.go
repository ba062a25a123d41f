package proxy

import "github.com/limitgate/limitgate/commands"

// activity adds up the counters of decisions, for INFO.
func (p *Proxy) activity() commands.Activity {
	a := commands.Activity{Sources: map[string]int64{}, Took: p.decisions.Latencies()}
	for _, t := range p.decisions.Totals() {
		switch {
		case t.Shadow && t.Denies:
			a.WouldDeny += t.Count
		case t.Shadow:
		default:
			a.Decisions += t.Count
			a.Sources[t.Source] += t.Count
			if t.Denies {
				a.Denied += t.Count
			}
		}
	}
	return a
}
