package rlsenv

import (
	"log/slog"
	"time"
)

// Settings are the meaning of the variables of ratelimit.
type Settings struct {
	// HTTP, GRPC and Debug are the addresses to listen on, host:port. GRPC may be UnixPrefix and
	// the path of a socket.
	HTTP, GRPC, Debug string
	// GRPCTLS are the files of the gRPC listener; nil is no TLS.
	GRPCTLS *ServerTLS
	// MaxConnectionAge is how long a gRPC connection lives, 0 for ever, and MaxConnectionAgeGrace
	// how long its calls may take to end after that.
	MaxConnectionAge, MaxConnectionAgeGrace time.Duration

	// ConfigDir is the directory of the limits; empty with xDS.
	ConfigDir string
	// XDS is the server of the limits; nil if they are in ConfigDir.
	XDS *XDS
	// MergeDomains lets several files name one domain.
	MergeDomains bool
	// ForceStart serves requests before there are limits, and HealthyWithConfig is healthy only
	// after there are.
	ForceStart, HealthyWithConfig bool

	// Redis has the counters.
	Redis Redis
	// KeyPrefix is part of the name of each counter.
	KeyPrefix string

	// Shadow makes every answer admit the request, with the true statuses of its descriptors. Quota makes all limits quotas.
	Shadow, Quota bool
	// ResponseHeaders and RequestHeaders are the headers of answers about limits, for the client
	// and for the upstream; nil is none.
	ResponseHeaders, RequestHeaders *HeaderNames
	// Metadata adds dynamic metadata to answers.
	Metadata bool
	// NearLimit is the part of a limit above which hits count as near it, 0 to 1.
	NearLimit float64

	// PrometheusAddr is the host:port where metrics are served, whose host may be empty; an empty
	// address is nowhere.
	PrometheusAddr string
	// LogLevel is the minimum level that is logged, and LogFormat text or json.
	LogLevel  slog.Level
	LogFormat string
	// OTLPEndpoint is the URL of a collector of traces; empty is off.
	OTLPEndpoint string
}

// UnixPrefix precedes the path of a Unix socket in Settings.GRPC.
const UnixPrefix = "unix:"

// ServerTLS are PEM files of a listener, by their paths.
type ServerTLS struct {
	Cert, Key string
	// ClientCA has the authorities of the certificates that clients must have; empty requires
	// none. ClientSAN is a DNS name that these must be for; empty allows any.
	ClientCA, ClientSAN string
}

// ClientTLS are PEM files of a connection, by their paths.
type ClientTLS struct {
	// CA has authorities in place of the system's; it may be empty.
	CA string
	// Cert and Key are the certificate of this side, or both empty.
	Cert, Key string
	// ServerName is the name in the server's certificate; empty is the host.
	ServerName string
}

// XDS is a server of limits and how to connect to it.
type XDS struct {
	// Server is the target of a gRPC connection, usually host:port.
	Server string
	// NodeID and NodeMetadata describe this client; servers choose the limits by the id.
	NodeID       string
	NodeMetadata map[string]string
	// Headers are sent with the stream, by names in lower case. They may have secrets.
	Headers map[string]string
	// TLS encrypts the connection; nil does not.
	TLS *ClientTLS
	// MinBackoff and MaxBackoff bound the pauses between connections.
	MinBackoff, MaxBackoff time.Duration
	// MaxMessage is the largest message in bytes; 0 is the default of gRPC.
	MaxMessage int
}

// Redis is a Redis and how to connect to it.
type Redis struct {
	// Addrs are host:port: of nodes of a cluster, of one Redis, or of Sentinels. There are none if
	// no variable names a Redis.
	Addrs []string
	// Cluster reports a Redis Cluster.
	Cluster bool
	// Sentinel is the name of the master that the Sentinels at Addrs watch; empty without them.
	Sentinel string
	// DB is the database of one Redis.
	DB int
	// User and Password are for Redis and Sentinels. Without a password connections do not log
	// in. User is empty for the default user.
	User, Password string
	// TLS encrypts the connections; nil does not.
	TLS *ClientTLS
}

// HeaderNames are the names of headers about a limit.
type HeaderNames struct {
	Limit, Remaining, Reset string
}
