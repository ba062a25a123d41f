package integration

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// ready returns the status and the body of /readyz.
func (p *proxy) ready() (int, string) {
	p.tb.Helper()
	resp, err := http.Get("http://" + p.admin + "/readyz")
	if err != nil {
		p.tb.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode, p.get("/readyz")
}

// TestStartWithoutStore: a proxy whose Redis is down or hangs starts, logs the fault in
// the words of doctor, and uses the backstop until the store is there, for addresses too.
// Two proxies that started so then share the counts of the store, and count each other.
func TestStartWithoutStore(t *testing.T) {
	faults := []struct {
		name          string
		breakIt, mend func(*redistest.Node)
		text          string
	}{
		{"down", (*redistest.Node).Kill, (*redistest.Node).Restart, "connection refused: start Redis, or correct the address"},
		{"hung", (*redistest.Node).Stop, (*redistest.Node).Cont, "it takes connections and does not answer: it hangs, or is no Redis"},
	}
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			startWithout(t, []*redistest.Node{redistest.Start(t)}, fault.text, fault.breakIt, fault.mend)
		})
		t.Run("cluster "+fault.name, func(t *testing.T) {
			t.Parallel()
			startWithout(t, redistest.StartCluster(t, 3, 0).Nodes, fault.text, fault.breakIt, fault.mend)
		})
	}
}

// startWithout starts two proxies while their store is broken, and repairs it.
func startWithout(t *testing.T, nodes []*redistest.Node, text string, breakIt, mend func(*redistest.Node)) {
	t.Helper()
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.Addr)
		breakIt(n)
	}
	const limits = "{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant], rate: 1000/h}]}, shared: [{id: ip, by: [ip], rate: 900/10m, algorithm: sliding_log}]}"
	flags := []string{"--redis", strings.Join(addrs, ","), "--decision-timeout", "1s", "--retry-jitter", "0"}
	path := writeLimits(t, limits)
	willing := serve(t, path, flags...)
	choosy := serve(t, path, append(flags, "--ready-needs-store")...)
	for _, p := range []*proxy{willing, choosy} {
		if log := p.output(); !strings.Contains(log, text) || !strings.Contains(log, "set --instances N") {
			t.Errorf("it does not log %q, or not its consequences:\n%s", text, log)
		}
		if v, err := check(p.client(), "t", "-", "192.0.2.1"); err != nil || v.source != "backstop" || !v.allowed {
			t.Errorf("without a store: %+v, %v", v, err)
		}
	}
	if code, body := willing.ready(); code != http.StatusOK || !strings.Contains(body, `"store":"unreached"`) || !strings.Contains(body, addrs[0]) {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if out, errs, code := run(t, nil, "shards", "--addr", willing.addr); code != 0 || !strings.HasPrefix(out, "no master of the store is known: "+addrs[0]) || !strings.HasSuffix(out, "; the backstop decides\n") {
		t.Errorf("limitgate shards: exit %d: %s%s", code, out, errs)
	} else if i := slices.IndexFunc(addrs, func(addr string) bool { return !strings.Contains(out, addr) }); i >= 0 {
		t.Errorf("limitgate shards does not name %s: %s", addrs[i], out)
	}
	for _, words := range [][]any{{"RL.RESET", "t"}, {"DEL", "k"}} {
		err := willing.client().Do(t.Context(), words...).Err()
		if err == nil || !strings.Contains(err.Error(), ": no master of the store is known: "+addrs[0]) || !strings.HasSuffix(err.Error(), "); send the command again when RL.CONFIG SHARDS has no error") {
			t.Errorf("%v: %v", words, err)
		}
	}
	const notRefunded = "nothing was refunded: the store is away; send the command again when RL.CONFIG SHARDS has no error"
	if err := willing.client().Do(t.Context(), "RL.REFUND", "t", "-", "-", 1).Err(); err == nil || !strings.HasSuffix(err.Error(), notRefunded) {
		t.Errorf("RL.REFUND: %v", err)
	}
	if code, body := choosy.ready(); code != http.StatusServiceUnavailable || !strings.Contains(body, `"ready":false`) {
		t.Errorf("/readyz of one that is to reach its store first: %d %s", code, body)
	}
	for _, n := range nodes {
		mend(n)
	}
	for i, p := range []*proxy{willing, choosy} {
		eventually(t, "the store decides", func() bool { return askFor(t, p, i).source == "store" })
		if code, body := p.ready(); code != http.StatusOK {
			t.Errorf("/readyz of one that has reached its store: %d %s", code, body)
		}
	}
	first, second := askFor(t, willing, 0), askFor(t, choosy, 1)
	if first.id != "ip" || second.id != "ip" || second.left != first.left-1 {
		t.Errorf("%+v, then %+v: the proxies do not share the bucket of the address", first, second)
	}
	if log := willing.output(); !strings.Contains(log, "the backstop has no ceiling") || !strings.Contains(log, "what plan p admits of one tenant") {
		t.Errorf("it does not ask for a ceiling:\n%s", log)
	}
	for _, p := range []*proxy{willing, choosy} {
		eventually(t, "both are counted", func() bool { return strings.Contains(p.get("/readyz"), `"instances":2,`) })
	}
}

// askFor sends a check of one address and of one of two tenants.
func askFor(t *testing.T, p *proxy, tenant int) verdict {
	t.Helper()
	v, err := check(p.client(), fmt.Sprint("tenant", tenant), "-", "192.0.2.2")
	if err != nil {
		t.Fatal(err)
	}
	return v
}
