package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/cluster/doctor"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/logthrottle"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// openTimeout bounds connecting to the store at the start.
const openTimeout = 10 * time.Second

// unreachedPause is the interval at which a proxy that has not reached its store looks whether the reason is another one, and
// unreachedQuiet the shortest time between two lines about that: the reason of a cluster may be that of each node in turn.
const (
	unreachedPause = 5 * time.Second
	unreachedQuiet = 10 * time.Minute
)

// agreement is the secret that a proxy proposes to the others of its store, and the
// function that receives the agreed one. The zero agreement proposes nothing.
type agreement struct {
	secret []byte
	adopt  func(secret []byte)
}

// openStore opens the store of the settings. If a Redis cannot be reached, the proxy
// starts without it.
func (p *Proxy) openStore(ctx context.Context, agree agreement) (limiter.Store, error) {
	s := p.settings
	if !s.UsesRedis() {
		p.memory = memory.New(memory.Options{Buckets: s.MemoryBuckets})
		return p.memory, nil
	}
	client, err := NewRedisClient(ctx, s, p.log)
	if err != nil {
		return nil, err
	}
	o := client.Options
	p.storeParts, p.redisCertExpires, p.storeOptions = client.Parts, client.CertExpires, o
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	outages := newOutages(p.metrics)
	o.StartWithout = true
	o.Secret, o.Adopt = agree.secret, agree.adopt
	o.ToLoop = p.toLoop
	o.IOTimeout = max(s.RedisIOTimeout, s.DecisionTimeout)
	o.Cooldown, o.DecisionTimeout = s.BreakerCooldown, s.DecisionTimeout
	o.OnOutage = func(d time.Duration) { outages.Observe(d.Seconds()) }
	o.Late = func(call []limit.Item, sent time.Time) { p.limiter.CacheLateReply(call, sent) }
	o.Returned = func(names []string) { p.limiter.Returned(names) }
	p.cluster, err = cluster.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return p.cluster, nil
}

// toLoop moves a connection to Redis into an event loop, which reads those of clients too: a
// reply passes through no other goroutine.
func (p *Proxy) toLoop(conn *net.TCPConn) (cluster.Socket, error) {
	s, err := p.loops.Adopt(conn)
	if err != nil {
		return nil, err // not a nil *server.Socket
	}
	return s, nil
}

// addrHasher returns the hasher of addresses, with the secret of the file or one that
// this process generates, and the agreement on a common secret through the store.
func (p *Proxy) addrHasher() (*limit.AddrHasher, agreement, error) {
	s := p.settings
	if s.PrivacyIPSecretFile != "" {
		h, err := hasherOfFiles(s)
		return h, agreement{}, err
	}
	secret := limit.RandomSecret()
	h, err := limit.NewAddrHasher(secret, limit.Prefixes{IPv4: s.PrivacyIPv4Prefix, IPv6: s.PrivacyIPv6Prefix})
	if err != nil || !s.UsesRedis() {
		return h, agreement{}, err
	}
	p.log.Info("addresses are hashed with a secret that is kept in the store: set --privacy-ip-secret-file FILE (privacy.ip_secret_file) to keep it elsewhere")
	return h, agreement{secret, h.Rekey}, nil
}

// hasherOfFiles returns the hasher of addresses with the secrets of the files.
func hasherOfFiles(s *config.Settings) (*limit.AddrHasher, error) {
	secret, err := config.ReadSecret(s.PrivacyIPSecretFile)
	if err != nil {
		return nil, err
	}
	h, err := limit.NewAddrHasher(secret, limit.Prefixes{IPv4: s.PrivacyIPv4Prefix, IPv6: s.PrivacyIPv6Prefix})
	if err != nil || s.PrivacyIPSecretPreviousFile == "" {
		return h, err
	}
	previous, err := config.ReadSecret(s.PrivacyIPSecretPreviousFile)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(previous, secret) {
		return nil, errors.New("the secret of addresses and the previous one are equal: write a new secret into the file of --privacy-ip-secret-file")
	}
	return h, h.Rotate(previous)
}

// reached reports whether the store has been reached since the start.
func (p *Proxy) reached() bool {
	if p.cluster == nil {
		return true
	}
	select {
	case <-p.cluster.Reached():
		return true
	default:
		return false
	}
}

// watchStore logs the first contact with a store that this proxy started without, and its
// configuration warnings.
func (p *Proxy) watchStore(ctx context.Context, without bool) error {
	if !p.awaitStore(ctx) {
		return nil
	}
	if without {
		p.log.Info("store reached, and asked from now on", "store", p.StoreKind())
	}
	asking, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	p.warnOfAddresses(asking)
	for _, sentence := range doctor.ConfigWarnings(asking, p.cluster) {
		p.log.Warn("the store may forget", "advice", sentence)
	}
	return nil
}

// awaitStore waits until the store has been reached, and logs errors that are others than that of the start: the first may be that of a
// Redis which starts. It reports whether the store has been reached before ctx ended.
func (p *Proxy) awaitStore(ctx context.Context) bool {
	reason := unreachedReason{quiet: logthrottle.Throttle{Period: unreachedQuiet}}
	for !p.reached() {
		asking, cancel := context.WithTimeout(ctx, openTimeout)
		err := p.cluster.Ping(asking)
		cancel()
		if ctx.Err() == nil && !p.reached() && reason.isAnother(err) {
			p.log.Error("the store is still not reached, and for another reason", "error", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-p.cluster.Reached():
		case <-time.After(unreachedPause):
		}
	}
	return true
}

// warnOfAddresses logs that some addresses of the store are not used, or may not be. A cluster has nodes at its
// addresses; one that is none of its own leads to another store.
func (p *Proxy) warnOfAddresses(ctx context.Context) {
	addrs := p.settings.Redis.Addrs
	if len(addrs) < 2 || p.settings.RedisSentinel.Master != "" {
		return
	}
	if p.cluster.IsCluster() {
		if others, err := doctor.OtherStores(ctx, p.storeOptions); err == nil && len(others) > 0 {
			p.log.Warn("some addresses of the store lead to another store, where proxies would count apart: name the nodes of one store, as limitgate doctor shows", "others", strings.Join(others, ","), "addrs", strings.Join(addrs, ","))
		}
		return
	}
	used := ""
	for _, sh := range p.cluster.Shards() {
		used = sh.Addr
	}
	p.log.Warn("the store is one Redis, and only one of its addresses is used: limitgate doctor shows whether the others lead to another store", "used", used, "addrs", strings.Join(addrs, ","))
}

// warnWithout logs that this proxy starts without its store, and the consequences.
func (p *Proxy) warnWithout(ctx context.Context) {
	p.log.Error("starting without the store, using the backstop until it answers", p.whyWithout(p.cluster.Ping(ctx))...)
	if p.settings.Instances.Source == config.InstancesHeartbeat {
		p.log.Warn("the number of proxies is unknown without the store, so this proxy admits whole limits: set --instances N or dns:NAME")
	}
}

// whyWithout returns the attributes of a line about an error of a store that is asked at the start.
func (p *Proxy) whyWithout(err error) []any {
	switch cluster.KindOf(err) {
	case cluster.KindNoNode:
		return []any{"reason", "its nodes answer, and hash slots have no master", "error", err, "advice", "limitgate doctor shows which"}
	case cluster.KindClusterDown:
		return []any{"reason", "its nodes answer, and the cluster refuses calls", "error", err, "advice", cluster.Advice(err) + "; limitgate doctor shows which masters and slots"}
	}
	refusal := cluster.RefusesWrites(err)
	attrs := []any{"reason", cmp.Or(refusal, "it cannot be reached"), "error", err}
	addrs := p.storeOptions.Addrs
	if refusal == "" && cluster.IsAway(err) && p.storeOptions.Sentinel == "" && len(addrs) == 1 && cluster.IsNode(addrs[0]) && !p.cluster.IsCluster() {
		attrs = append(attrs, "advice", cluster.OtherNodes)
	}
	return attrs
}

// StoreKind returns the kind of store, as far as it is known.
func (p *Proxy) StoreKind() string {
	switch {
	case p.cluster == nil:
		return "memory"
	case !p.reached():
		return "unreached"
	case p.cluster.IsCluster():
		return "cluster"
	default:
		return "redis"
	}
}
