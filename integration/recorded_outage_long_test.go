//go:build long

package integration

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/dashboard"
	"github.com/limitgate/limitgate/internal/redistest"
)

// The times of the recorded outage, in seconds.
const (
	quietBefore = 15
	outageLasts = 60
	budgetAfter = 15 // when those of the SLO in_time must fire
	alertAfter  = 45 // when LimitgateShardOut must fire
	quietAfter  = 20 // more than the 8 s within which a proxy finds that a master is empty
)

// recordedOutage is a recording of a proxy whose store loses a master and gets it back. The fields
// behind it are numbers of seconds.
type recordedOutage struct {
	*recording
	master                       string // its address
	killed, restarted, recovered int
}

// TestLongRecordedOutage kills a master of a cluster without replicas for a minute under the traffic of
// the demo, and compares the page of the proxy, its series, the alerts that these raise, and the section of
// the runbook to which the alert leads.
func TestLongRecordedOutage(t *testing.T) {
	c := redistest.StartCluster(t, shards, 0, "--cluster-require-full-coverage", "no")
	p := serve(t, "../examples/limits.yaml", append(exact, "--redis", strings.Join(c.Addrs(), ","))...)
	end := startDemo(t, p)
	o := recordOutage(t, startRecording(t, p), c.Nodes[0])
	if report := end(); !strings.Contains(report, " 0 without an answer.") {
		t.Errorf("the demo: %s", report)
	}
	rules := readRules(t)
	rule := rules.alert(t, "LimitgateShardOut")
	firing := o.shardOutFires(t, rule)
	t.Logf("the master %s was killed at 0 s, started again at %d s, and decided again at %d s:\n%s",
		o.master, o.restarted-o.killed, o.recovered-o.killed, o.timeline(firing))
	if !firing[o.killed+alertAfter] || slices.Contains(firing[:o.killed+1], true) || slices.Contains(firing[o.recovered:], true) {
		t.Errorf("%s does not fire %d s after the master was killed, or fires before that or after the recovery", rule.Alert, alertAfter)
	}
	o.checkPage(t)
	o.checkDecisions(t)
	o.checkRunbook(t, rule)
	o.checkAlerts(t, rules, o.expected(t, rules, firing))
}

// recordOutage records some quiet seconds, the outage of a master, and some quiet seconds after it.
func recordOutage(t *testing.T, r *recording, master *redistest.Node) *recordedOutage {
	t.Helper()
	o := &recordedOutage{recording: r, master: master.Addr}
	r.pass(quietBefore)
	o.killed = r.now()
	master.Kill()
	r.pass(outageLasts)
	o.restarted = r.now()
	master.Restart()
	for r.next(); o.wordAt(r.now()) != "closed" || o.states()[r.now()] != 0; r.next() {
		if r.now() > o.restarted+int(startTimeout.Seconds()) {
			t.Fatalf("the master decides nothing since its restart:\n%s", r.p.output())
		}
	}
	o.recovered = r.now()
	r.pass(quietAfter)
	return o
}

// states returns the state of the master's breaker in each second: 0 closed, 1 open, 2 half-open.
func (o *recordedOutage) states() []float64 {
	return o.of(fmt.Sprintf("limitgate_breaker_state{shard=%q}", o.master))
}

// shown returns the master as the page showed it in a second that was recorded.
func (o *recordedOutage) shown(second int) dashboard.ShardSample {
	if s := o.seconds[second].page; s != nil {
		for _, shard := range s.Shards {
			if shard.Addr == o.master {
				return shard
			}
		}
	}
	return dashboard.ShardSample{}
}

// wordAt returns the page's word for the state of the master's breaker, "" for a second that is
// not recorded.
func (o *recordedOutage) wordAt(second int) string { return o.shown(second).Breaker }

// shardOutFires reports for each second whether the rule LimitgateShardOut fires: while the state of the
// breaker has been above 0 for as long as the rule demands. promtool then checks it.
func (o *recordedOutage) shardOutFires(t *testing.T, rule alertRule) []bool {
	t.Helper()
	needs, err := time.ParseDuration(rule.For)
	if err != nil {
		t.Fatal(err)
	}
	firing, since := make([]bool, len(o.seconds)), -1
	for i, state := range o.states() {
		switch {
		case state == 0:
			since = -1
		case since < 0:
			since = i
		}
		firing[i] = since >= 0 && i-since >= int(needs.Seconds())
	}
	return firing
}

// timeline describes the seconds in which something changed.
func (o *recordedOutage) timeline(firing []bool) string {
	text, last := &strings.Builder{}, ""
	fmt.Fprintf(text, "%5s  %-9s %-6s %-24s %-7s %s\n", "s", "page", "series", "decisions", "alert", "error on the page")
	states := o.states()
	for i, s := range o.seconds {
		if s.series == nil {
			continue
		}
		alert := "-"
		if firing[i] {
			alert = "fires"
		}
		line := fmt.Sprintf("%-9s %-6v %-24s %-7s %s", o.wordAt(i), states[i],
			fmt.Sprintf("%d store, %d backstop", s.checks.sources["store"], s.checks.sources["backstop"]), alert, o.shown(i).Error)
		if line != last {
			fmt.Fprintf(text, "%5d  %s\n", i-o.killed, line)
		}
		last = line
	}
	return text.String()
}

// checkPage fails the test unless the page and the series agree about all masters: this one is out from
// two seconds after it was killed until it is started again, and the others never are.
func (o *recordedOutage) checkPage(t *testing.T) {
	t.Helper()
	states, open := o.states(), 0
	for i, s := range o.seconds {
		if s.series == nil || i > o.killed && i < o.killed+2 || i > o.restarted && i <= o.recovered {
			continue
		}
		shown, out := o.shown(i), i > o.killed && i <= o.restarted
		if (shown.Breaker != "closed") != out || (states[i] > 0) != out || strings.HasSuffix(shown.Error, "connection refused") != out {
			t.Errorf("%d s: the page has %+v, and the series is %v", i-o.killed, shown, states[i])
		}
		if shown.Breaker == "open" && states[i] == 1 {
			open++
		}
		for _, shard := range s.page.Shards {
			if shard.Addr != o.master && (shard.Breaker != "closed" || s.series[fmt.Sprintf("limitgate_breaker_state{shard=%q}", shard.Addr)] != 0) {
				t.Errorf("%d s: the page has %+v of a master that is well", i-o.killed, shard)
			}
		}
	}
	if open < outageLasts/2 { // the others are half-open, for a probe, or missed
		t.Errorf("the page and the series agree that the breaker is open in %d seconds", open)
	}
}

// checkDecisions fails the test unless each check was decided, those of the other masters by them.
func (o *recordedOutage) checkDecisions(t *testing.T) {
	t.Helper()
	for i, s := range o.seconds {
		if s.series == nil {
			continue
		}
		out := i >= o.killed+2 && i <= o.restarted
		quiet := i <= o.killed || i > o.recovered
		backstop := s.checks.sources["backstop"]
		if s.checks.decisions() != watchedTenants || s.checks.sources["store"] == 0 || out && backstop == 0 || quiet && backstop > 0 {
			t.Errorf("%d s: %s %v", i-o.killed, &s.checks, s.checks.errors)
		}
	}
}

// checkRunbook fails the test unless the page and the alert lead to the same section of the runbook,
// and the section names the signs that were recorded.
func (o *recordedOutage) checkRunbook(t *testing.T, rule alertRule) {
	t.Helper()
	_, anchor, _ := strings.Cut(rule.Annotations["runbook_url"], "#")
	page, err := os.ReadFile("../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(page), "\n## ")[1:]
	i := slices.IndexFunc(sections, func(s string) bool {
		heading, _, _ := strings.Cut(s, "\n")
		return strings.ReplaceAll(strings.ToLower(heading), " ", "-") == anchor
	})
	if i < 0 {
		t.Fatalf("docs/runbook.md has no section #%s", anchor)
	}
	heading, text, _ := strings.Cut(sections[i], "\n")
	if told := fmt.Sprintf("See %q in the runbook", heading); !strings.Contains(o.p.get("/page.js"), told) {
		t.Errorf("the page does not have: %s", told)
	}
	for _, sign := range []string{"breaker `open`", "`connection refused`", "`limitgate_breaker_state{shard}` 1", "(#redis-came-back-empty)"} {
		if !strings.Contains(text, sign) {
			t.Errorf("section %s of docs/runbook.md lacks %s", heading, sign)
		}
	}
	for _, kind := range []string{"network", "breaker"} {
		series := o.of(fmt.Sprintf("limitgate_store_errors_total{kind=%q,shard=%q}", kind, o.master))
		if !strings.Contains(text, fmt.Sprintf("{kind=%q}", kind)) || series[o.killed] > 0 || series[o.restarted] == 0 {
			t.Errorf("section %s of docs/runbook.md has other errors than the series, of kind %s: %v", heading, kind, series)
		}
	}
	if outages := o.of("limitgate_shard_outage_seconds_count"); outages[o.restarted] != 0 || outages[o.now()] != 1 {
		t.Errorf("outages: %v", outages)
	}
}

// explainedAlerts are the alerts that the story explains, with their labels: decisions of the backstop burn the
// budget of the SLO in_time, and the master comes back without its data.
var explainedAlerts = map[string]map[string]string{
	"LimitgateInTimeBudgetFast": {"slo": "in_time"}, "LimitgateInTimeBudgetSteady": {"slo": "in_time"}, "LimitgateInTimeBudgetSlow": {"slo": "in_time"},
	"LimitgateStoreReset": {},
}

// expected returns whether each alert fires: LimitgateShardOut in all seconds, the others before the outage,
// twice in it, at its end and after it. LimitgateLatencyBudgetSlow is left out, which one slow decision in a
// hundred raises: a busy machine has these.
func (o *recordedOutage) expected(t *testing.T, rules *alertRules, firing []bool) (all []expectation) {
	t.Helper()
	for i, fires := range firing {
		e := expectation{second: i, rule: rules.alert(t, "LimitgateShardOut")}
		if fires {
			e.labels = map[string]string{"shard": o.master}
		}
		all = append(all, e)
	}
	for _, rule := range rules.all() {
		if rule.Alert == "" || rule.Alert == "LimitgateShardOut" || rule.Alert == "LimitgateLatencyBudgetSlow" {
			continue
		}
		begins := o.killed
		if rule.Alert == "LimitgateStoreReset" {
			begins = o.restarted
		}
		for _, second := range []int{o.killed, o.killed + budgetAfter, o.killed + alertAfter, o.restarted, o.now()} {
			e := expectation{second: second, rule: rule}
			if second > begins {
				e.labels = explainedAlerts[rule.Alert]
			}
			all = append(all, e)
		}
	}
	return all
}
