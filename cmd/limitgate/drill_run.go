package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/drill"
	"github.com/limitgate/limitgate/internal/proxy"
)

// stateTimeout bounds the question for the breakers, during which no check is sent.
const stateTimeout = 250 * time.Millisecond

// practise makes the outage of a drill, and reports whether it passed.
func (f *drillFlags) practise(ctx context.Context, env *environment, name string) (passed bool, err error) {
	checks, err := f.newClient(f.addr, f.onWait, 2)
	if err != nil {
		return false, err
	}
	defer func() { _ = checks.Close() }()
	store, err := f.openStore(ctx)
	if err != nil {
		return false, err
	}
	defer store.Close()
	host, port, _ := net.SplitHostPort(store.Masters()[0])
	if err := store.CheckMark(ctx); errors.Is(err, drill.ErrNotMarked) {
		return false, fmt.Errorf("%w: if it is one, redis-cli -c -h %s -p %s SET %s yes EX 3600 marks it for an hour", err, host, port, drill.MarkKey)
	} else if err != nil {
		return false, err
	}
	if err := f.checkSameStore(ctx, store); err != nil {
		return false, err
	}
	fault, err := drill.NewFault(ctx, name, store)
	if err != nil {
		return false, err
	}
	o := &drill.Options{Fault: fault, Check: f.checker(checks), Rate: f.rate, Outage: f.outage, Within: f.within, Line: f.line(env.stdout)}
	if f.admin != "" {
		if o.State, err = f.breakers(ctx); err != nil {
			return false, err
		}
	}
	v, err := drill.Run(ctx, o)
	if v == nil || err != nil {
		return false, err
	}
	if f.asJSON {
		return v.Passed, json.NewEncoder(env.stdout).Encode(v)
	}
	return v.Passed, v.Write(env.stdout)
}

// openStore connects to the store, as the settings say.
func (f *drillFlags) openStore(ctx context.Context) (*drill.Store, error) {
	how, err := proxy.NewRedisClient(ctx, &f.settings, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err := checkNoLimitgate(ctx, how.Options.Addrs); err != nil {
		return nil, err
	}
	prober, err := cluster.NewProber(how.Options)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, addr := range how.Options.Addrs {
		_, err := prober.Contact(ctx, addr)
		if err == nil {
			return drill.OpenStore(ctx, how.Options.Addrs, prober.AnyClient)
		}
		errs = append(errs, fmt.Errorf("find masters by %s: %s", addr, cluster.Explain(err)))
	}
	return nil, errors.Join(errs...)
}

// checkSameStore returns an error unless the limitgate uses the masters of the store.
func (f *drillFlags) checkSameStore(ctx context.Context, store *drill.Store) error {
	client, err := f.newClient(f.addr, f.onWait, 3) // the maps of RESP3 have names
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	reply, err := shardsRunning.ask(ctx, client, f.addr, f.onWait, []any{"RL.CONFIG", "SHARDS"})
	if err != nil {
		return err
	}
	var used []string
	all, _ := reply.([]any)
	for _, row := range all {
		used = append(used, fieldText(row, "addr"))
	}
	slices.Sort(used)
	masters := store.Masters()
	switch {
	case len(used) == 0:
		return fmt.Errorf("the limitgate at %s has its buckets in memory, and --redis leads to %s: serve by --redis", f.addr, strings.Join(masters, ", "))
	case used[0] == "":
		return fmt.Errorf("the limitgate at %s: %s", f.addr, fieldText(all[0], "error"))
	case !slices.Equal(used, masters):
		return fmt.Errorf("the limitgate at %s uses the masters %s, and --redis leads to %s: name its store by the same addresses",
			f.addr, strings.Join(used, ", "), strings.Join(masters, ", "))
	}
	return nil
}

// checker returns a function that sends a check.
func (f *drillFlags) checker(client *redis.Client) func(ctx context.Context) (drill.Answer, error) {
	return func(ctx context.Context) (drill.Answer, error) {
		ctx, cancel := context.WithTimeout(ctx, f.onWait)
		defer cancel()
		d, err := askDecision(client.Do(ctx, "RL.CHECK", drill.Tenant, "-", "-"))
		if err != nil {
			return drill.Answer{}, explainDial(f.addr, err)
		}
		return drill.Answer{Admitted: d.Allowed, Source: d.Source}, nil
	}
}

// line returns a function that prints a line.
func (f *drillFlags) line(w io.Writer) func(*drill.Line) {
	printed := 0
	return func(l *drill.Line) {
		if f.asJSON {
			_ = json.NewEncoder(w).Encode(l)
			return
		}
		if printed%headerEvery == 0 {
			fmt.Fprint(w, drill.Header())
		}
		printed++
		fmt.Fprint(w, l)
	}
}

// breakers returns a function that asks the admin address for the breakers, once it has answered for them.
func (f *drillFlags) breakers(ctx context.Context) (func(ctx context.Context) string, error) {
	encryption, err := f.tlsConfig(f.admin)
	if err != nil {
		return nil, err
	}
	first, cancel := context.WithTimeout(ctx, f.onWait)
	defer cancel()
	const wrong = "no outage is made: --admin %s does not answer as the admin address of a limitgate: name that one, or leave out --admin"
	if reply, err := fetchReadiness(first, f.admin, encryption); err != nil {
		return nil, fmt.Errorf(wrong+" (%s)", f.admin, strings.ReplaceAll(err.Error(), "--addr", "--admin"))
	} else if breakersOf(reply.body) == breakersUnknown {
		return nil, fmt.Errorf(wrong, f.admin)
	}
	return func(ctx context.Context) string {
		ctx, cancel := context.WithTimeout(ctx, stateTimeout)
		defer cancel()
		reply, err := fetchReadiness(ctx, f.admin, encryption)
		if err != nil {
			return breakersUnknown
		}
		return breakersOf(reply.body)
	}, nil
}

// breakersUnknown stands for an answer without breakers.
const breakersUnknown = "breakers unknown"

// breakersOf returns how many breakers of an answer of /readyz are in each state.
func breakersOf(body []byte) string {
	var answer struct {
		Shards []struct {
			Breaker string `json:"breaker"`
		} `json:"shards"`
	}
	if json.Unmarshal(body, &answer) != nil || len(answer.Shards) == 0 {
		return breakersUnknown
	}
	states := map[string]int{}
	for _, s := range answer.Shards {
		states[s.Breaker]++
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(states)) {
		all = append(all, fmt.Sprintf("%d %.16s", states[name], name))
	}
	return "breakers " + strings.Join(all, ", ")
}
