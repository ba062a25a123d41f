package proxy

import (
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/instances"
)

// newCount returns the count of the proxies that share the limits. The store must be
// open.
func (p *Proxy) newCount() *instances.Count {
	from := p.settings.Instances
	opts := instances.Options{Name: from.String(), Ceiling: p.settings.BackstopCeiling, Log: p.log}
	if p.cluster != nil {
		opts.Answers = p.cluster.Answers
	}
	switch from.Source {
	case config.InstancesHeartbeat:
		opts.Source, opts.OfStore = instances.Heartbeat(p.cluster.NewHeartbeat()), true
	case config.InstancesDNS:
		opts.Source = instances.DNS(from.Name)
	case config.InstancesSRV:
		opts.Source = instances.SRV(from.Name)
	case config.InstancesEDS:
		opts.Source = instances.EDS(from.Addr, from.Name)
	default:
		opts.Source = instances.Static(from.Count)
	}
	return instances.New(opts)
}
