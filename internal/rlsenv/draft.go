package rlsenv

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// draft holds the variables that are taken. A variable that alone is a setting is in Settings
// already; finish makes the other settings.
type draft struct {
	Settings

	host, grpcHost, debugHost, grpcUDS string
	port, grpcPort, debugPort          int
	grpcUseTLS                         bool
	grpcTLS                            ServerTLS

	fromXDS, xdsUseTLS      bool
	root                    string
	watchRoot               bool
	runtimeSub, runtimeApp  string
	xds                     XDS
	xdsTLS                  ClientTLS
	xdsMetadata             string
	responseOn, requestOn   bool
	response, request       HeaderNames
	statsOff, prometheusOn  bool
	prometheusAddr          string
	tracing                 bool
	tracesProtocol          string
	collector, tracesTarget string

	redisType                              redisType
	redisSocket, redisURL, auth, otherAuth string
	redisUseTLS                            bool
	redisTLS                               ClientTLS
}

// redisType is what REDIS_TYPE names.
type redisType int

const (
	single redisType = iota
	redisCluster
	redisSentinel
)

// finish returns the settings. It reports variables that contradict each other.
func (d *draft) finish(p *problems) *Settings {
	d.listeners(p)
	d.configSource(p)
	d.headerNames(p)
	d.redis(p)
	d.traces(p)
	if d.prometheusOn && !d.statsOff {
		d.PrometheusAddr = d.prometheusAddr
	}
	return &d.Settings
}

func (d *draft) listeners(p *problems) {
	if !p.given("DEBUG_HOST") {
		d.debugHost = "127.0.0.1"
	}
	address := func(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
	d.HTTP, d.GRPC, d.Debug = address(d.host, d.port), address(d.grpcHost, d.grpcPort), address(d.debugHost, d.debugPort)
	if d.grpcUDS != "" {
		if !filepath.IsAbs(d.grpcUDS) {
			p.refuse("GRPC_UDS", "it is not the absolute path of a Unix socket; write for example /run/ratelimit.sock")
		}
		d.GRPC = UnixPrefix + d.grpcUDS
	}
	t := &d.grpcTLS
	if !d.grpcUseTLS {
		p.idle("GRPC_SERVER_USE_TLS=true", named{"GRPC_SERVER_TLS_CERT", t.Cert}, named{"GRPC_SERVER_TLS_KEY", t.Key},
			named{"GRPC_CLIENT_TLS_CACERT", t.ClientCA}, named{"GRPC_CLIENT_TLS_SAN", t.ClientSAN})
		return
	}
	if t.Cert == "" || t.Key == "" {
		p.refuse("GRPC_SERVER_USE_TLS", "it needs a certificate and its key: set GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY")
	}
	if t.ClientCA == "" && t.ClientSAN != "" {
		p.idle("GRPC_CLIENT_TLS_CACERT", named{"GRPC_CLIENT_TLS_SAN", t.ClientSAN})
		t.ClientSAN = ""
	}
	d.GRPCTLS = t
}

// configSource sets where limits come from.
func (d *draft) configSource(p *problems) {
	if d.fromXDS {
		d.XDS = d.xdsServer(p)
		return
	}
	if d.root == "" {
		p.refuse("RUNTIME_ROOT", "it is empty; write the directory of the limits, for example /data", "CONFIG_TYPE")
	}
	if d.runtimeApp == "" && d.watchRoot {
		p.refuse("RUNTIME_APPDIRECTORY", "without it ratelimit loads no limits unless RUNTIME_WATCH_ROOT=false; write for example config",
			"CONFIG_TYPE", "RUNTIME_WATCH_ROOT")
	}
	d.ConfigDir = filepath.Join(d.root, d.runtimeSub, d.runtimeApp)
}

func (d *draft) xdsServer(p *problems) *XDS {
	x := &d.xds
	const server = "CONFIG_GRPC_XDS_SERVER_URL"
	switch {
	case x.Server == "":
		p.refuse(server, "it is empty; write the address of the xDS server, for example envoy-gateway:18001", "CONFIG_TYPE")
	case strings.Contains(x.Server, "://"):
		p.refuse(server, "it is a URL and not host:port; write for example localhost:18000, and for TLS set CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_TYPE")
	case !isHostPort(x.Server, 1):
		p.refuse(server, "it is not host:port; write for example localhost:18000", "CONFIG_TYPE")
	}
	x.NodeMetadata = map[string]string{}
	for entry := range strings.SplitSeq(d.xdsMetadata, ",") {
		if name, text, found := strings.Cut(entry, "="); found {
			x.NodeMetadata[name] = text
		} else if entry != "" {
			p.note("CONFIG_GRPC_XDS_NODE_METADATA", "an entry without = is not sent; write NAME=VALUE,NAME=VALUE")
		}
	}
	x.TLS = p.clientTLS(&d.xdsTLS, d.xdsUseTLS, tlsNames{
		use: "CONFIG_GRPC_XDS_SERVER_USE_TLS", cert: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", key: "CONFIG_GRPC_XDS_CLIENT_TLS_KEY",
		ca: "CONFIG_GRPC_XDS_SERVER_TLS_CACERT", server: "CONFIG_GRPC_XDS_SERVER_TLS_SAN",
	})
	return x
}

// tlsNames are the variables of a connection. Server is empty without a variable of it.
type tlsNames struct{ use, cert, key, ca, server string }

// clientTLS returns t, without files that have no effect, or nil unless TLS is in use.
func (p *problems) clientTLS(t *ClientTLS, use bool, of tlsNames) *ClientTLS {
	if !use {
		p.idle(of.use+"=true", named{of.cert, t.Cert}, named{of.key, t.Key}, named{of.ca, t.CA}, named{of.server, t.ServerName})
		return nil
	}
	if t.Cert == "" || t.Key == "" { // ratelimit connects without a certificate
		p.idle(of.key, named{of.cert, t.Cert})
		p.idle(of.cert, named{of.key, t.Key})
		t.Cert, t.Key = "", ""
	}
	return t
}

func (d *draft) headerNames(p *problems) {
	check := func(on bool, prefix string, h *HeaderNames) *HeaderNames {
		if !on {
			return nil
		}
		for _, of := range []named{{"LIMIT_HEADER", h.Limit}, {"REMAINING_HEADER", h.Remaining}, {"RESET_HEADER", h.Reset}} {
			if !isToken(of.text) {
				p.refuse(prefix+of.name, "it is not the name of a header; write for example X-"+strings.ReplaceAll(of.name, "_", "-"))
			}
		}
		return h
	}
	d.ResponseHeaders = check(d.responseOn, "LIMIT_", &d.response)
	d.RequestHeaders = check(d.requestOn, "LIMIT_REQUEST_", &d.request)
}
