package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/limitgate/limitgate/internal/load"
	"github.com/limitgate/limitgate/internal/servers"
)

// The fleet that asks for one bucket: so many proxies, with so many checks a second in all. At
// this rate hardly two checks meet in a proxy, so that they are as many calls as those of 200
// proxies with 25 checks a second each, which would keep a machine busy by their number.
const (
	fleetProxies = 20
	fleetChecks  = 5000
)

// fleet is a side of many proxies on one Redis.
type fleet struct {
	name, limits string
	traffic      traffic
}

// fleetDriver makes the load of one side through all proxies.
type fleetDriver struct {
	loadDriver
	proxies []*servers.Limitgate
}

func (d *fleetDriver) close() error {
	err := d.loadDriver.close()
	for _, p := range d.proxies {
		err = errors.Join(err, p.Close())
	}
	return err
}

func (f fleet) side() side {
	return side{name: f.name, open: func(ctx context.Context, l *lab) (driver, error) {
		store, err := l.single(ctx)
		if err != nil {
			return nil, err
		}
		d := &fleetDriver{loadDriver: loadDriver{store: store, parts: parts{client: self(), store: store.pids()}}}
		var targets []load.Target
		for i := range fleetProxies {
			l.say("starting proxy %d of %d", i+1, fleetProxies)
			p, err := l.start(f.limits, store, patience...)
			if err != nil {
				return nil, errors.Join(err, d.close())
			}
			d.proxies = append(d.proxies, p)
			d.parts.proxy = append(d.parts.proxy, p.PID())
			targets = append(targets, load.Target{Addr: p.Addr, Conns: share(f.traffic.conns, fleetProxies, i), Keys: f.traffic.keys()})
		}
		if err := d.connect(ctx, f.traffic, gate{}.request(), load.Decision, targets); err != nil {
			return nil, errors.Join(err, d.close())
		}
		return d, nil
	}}
}

func fleetCases() []Case {
	about := fmt.Sprintf("%d proxies in processes of their own share one Redis and check one bucket. ", fleetProxies)
	paced := hot(10*fleetProxies, 1)
	paced.rate = fleetChecks
	full := hot(10*fleetProxies, 1)
	exact := func(t traffic) fleet { return fleet{name: "fleet, exact", limits: oneLimit, traffic: t} }
	calls := want{"script calls of the fleet", PerSecond, func(a, _ *sample) float64 { return float64(a.scripts().calls) / a.seconds }, nil}
	busy := want{"a core of Redis, taken by the fleet", Percent, func(a, _ *sample) float64 { return a.store * a.perSecond / 1e4 }, nil}
	whole := want{"script calls that take a whole core of Redis", PerSecond, func(a, _ *sample) float64 { return 1e6 / (a.store * a.batch()) }, nil}
	beside := gate{name: "one proxy, exact", kind: onRedis, traffic: paced}
	return []Case{
		compare("hot-fleet", fmt.Sprintf("one bucket, %d proxies with %s checks a second in all", fleetProxies, grouped(fleetChecks)),
			about+"At this rate hardly two checks meet in a proxy: they are as many calls as those of 200 proxies with "+
				"25 checks a second each. The yardstick is one proxy with all of these checks.",
			exact(paced).side(), beside.side(), storeMicros(nil), calls, busy),
		compare("hot-fleet-lease", fmt.Sprintf("one bucket, %d proxies, leases of measured size", fleetProxies),
			about+"The yardstick is one exact proxy with all of these checks.",
			fleet{name: "fleet, lease: auto", limits: leased("auto"), traffic: paced}.side(), beside.side(), storeMicros(nil), calls, busy),
		compare("hot-fleet-full", fmt.Sprintf("one bucket, %d proxies, each with as many checks as are answered", fleetProxies),
			about+"Each proxy has ten clients, which send the next check when the last is answered.",
			exact(full).side(), gate{name: "one proxy, exact", kind: onRedis, traffic: full}.side(), storeMicros(nil), calls, whole),
	}
}
