package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/envoy"
	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/internal/rlsxds"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/internal/tlsfiles"
)

// openConfig opens the configuration of the service: a folder, which must have a good one unless the
// service starts without, or an xDS server, which may come later.
func (r *rateLimitService) openConfig(s *config.RLS, log *slog.Logger) error {
	opts := rlsconfig.Options{MergeDomains: s.MergeDomains, Prefix: s.Prefix}
	if s.XDS != nil {
		return r.openXDS(s, opts, log)
	}
	if s.Config == "" && len(s.Native) > 0 {
		r.follow, r.healthy = untilEnd, func() bool { return true }
		return nil
	}
	if s.Config == "" {
		return config.Mistake("the rate limit service needs limits: name their folder by --rls-config, or domains that --limits has by --rls-native")
	}
	folder := envoy.NewFolder(s.Config, s.Extensions, opts, r.service, log)
	r.follow, r.healthy, r.problem = folder.Run, folder.Loaded, folder.Problem
	if err := folder.Load(); err != nil && s.ForceStart {
		folder.Failed(err)
	} else if err != nil {
		return fmt.Errorf("load rate limit configuration:\n%w", err)
	}
	return nil
}

// untilEnd is the part of a service that follows no configuration.
func untilEnd(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// openXDS makes the client of an xDS server.
func (r *rateLimitService) openXDS(s *config.RLS, opts rlsconfig.Options, log *slog.Logger) error {
	x := s.XDS
	resources, err := envoy.NewResources(s.Extensions, opts, r.service, log)
	if err != nil {
		return err
	}
	o := rlsxds.Options{
		Server: x.Server, NodeID: x.NodeID, Metadata: map[string]any{}, Headers: x.Headers, MaxMessage: x.MaxMessage, Log: log,
		MinBackoff: x.MinBackoff, MaxBackoff: x.MaxBackoff,
		ForgetVersion: true, // a server that was restarted may number its versions anew
		Apply:         resources.Apply,
	}
	for name, value := range x.Metadata {
		o.Metadata[name] = value
	}
	if x.Encrypted {
		files, err := tlsfiles.NewClient(tlsfiles.ClientOptions{CA: x.CA, Cert: x.Cert, Key: x.Key, ServerName: x.ServerName, Failed: func(err error) {
			log.Error("failed to read the TLS files for the xDS server, using the earlier ones", "error", err)
		}})
		if err != nil {
			return fmt.Errorf("connect to xDS server: %w", err)
		}
		host, _, _ := net.SplitHostPort(x.Server)
		o.TLS = func() (*tls.Config, error) { return files.Config(host) }
	}
	client, err := rlsxds.New(o)
	if err != nil {
		return fmt.Errorf("connect to xDS server: %w", err)
	}
	r.follow = func(ctx context.Context) error { return run.All(ctx, client.Run, resources.Run) }
	r.healthy = func() bool { return client.Status().Loaded }
	r.problem = func() string {
		if err := client.Status().Err; err != nil {
			return err.Error()
		}
		return ""
	}
	return nil
}

// healthEvery is how often the service checks whether it has become healthy.
const healthEvery = 100 * time.Millisecond

// reportHealth makes the health service report that this one is healthy, when it is.
func (r *rateLimitService) reportHealth(ctx context.Context) error {
	for !r.healthy() {
		if !run.Sleep(ctx, healthEvery) {
			return nil
		}
	}
	r.server.SetHealthy(true)
	return nil
}

// rlsTLS returns the configuration of connections to the service: by files of its own, or those of the
// other addresses; nil is no TLS.
func (p *Proxy) rlsTLS() (*tls.Config, error) {
	s, own := p.settings, p.settings.RLS.TLS
	o := tlsfiles.ServerOptions{Cert: s.TLSCert, Key: s.TLSKey, ClientCA: s.TLSClientCA, Failed: func(err error) {
		p.log.Error("failed to read the TLS files, using the earlier ones", "error", err)
	}}
	if own.Cert != "" {
		o.Cert, o.Key, o.ClientCA, o.ClientSAN = own.Cert, own.Key, own.ClientCA, own.ClientSAN
	}
	if o.Cert == "" {
		return nil, nil
	}
	files, err := tlsfiles.NewServer(o)
	if err != nil {
		return nil, err
	}
	return files.Config(), nil
}
