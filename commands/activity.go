package commands

import (
	"fmt"
	"strings"
	"time"

	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
)

// Activity is what the proxy has decided since its start.
type Activity struct {
	Decisions, Denied int64
	// WouldDeny counts the denials of shadow limits.
	WouldDeny int64
	// Sources counts the decisions by the word of their source.
	Sources map[string]int64
	// Took counts the decisions by the time that they took.
	Took *latency.Snapshot
}

// writeActivity writes the section of INFO about decisions, from which limitgate stats makes its
// lines. It concerns all tenants, and so do the rights that it needs, as those of RL.TOP.
func writeActivity(s *Session, b *strings.Builder) {
	if s.h.opts.Activity == nil || !s.user.MayUseAll() || !s.user.May(users.Read) {
		return
	}
	st, a := s.h.opts.Limits.Status(), s.h.opts.Activity()
	stale := 0
	if st.Error != "" {
		stale = 1
	}
	fmt.Fprintf(b, "limitgate_limits_version:%s\r\nlimitgate_limits_stale:%d\r\n", st.Version, stale)
	fmt.Fprintf(b, "limitgate_decisions:%d\r\nlimitgate_denied:%d\r\nlimitgate_would_deny:%d\r\n", a.Decisions, a.Denied, a.WouldDeny)
	for source := limit.SourceStore; source < limit.NumSources; source++ {
		fmt.Fprintf(b, "limitgate_source_%s:%d\r\n", source, a.Sources[source.String()])
	}
	micros := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	quantile := func(q float64) float64 { return micros(latency.Quantile(q, a.Took, nil)) }
	fmt.Fprintf(b, "limitgate_decision_percentiles_usec:p50=%.1f,p99=%.1f,p99.9=%.1f\r\n", quantile(0.5), quantile(0.99), quantile(0.999))
	b.WriteString("limitgate_decision_usec:")
	between := ""
	for most, n := range a.Took.Buckets() {
		fmt.Fprintf(b, "%s%.1f=%d", between, micros(most), n)
		between = ","
	}
	b.WriteString("\r\n")
}
