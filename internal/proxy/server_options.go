package proxy

import (
	"strconv"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/server"
)

// Sessions answer checks without waiting for the store.
var _ server.AsyncSession = (*commands.Session)(nil)

// serverOptions returns the options for clients' connections.
func serverOptions(s *config.Settings) server.Options {
	return server.Options{
		MaxConns: s.MaxConns, IdleTimeout: s.IdleTimeout, MaxAge: s.MaxConnAge, KeepAlive: server.DefaultOptions().KeepAlive,
		ShutdownTimeout: s.ShutdownTimeout, RequireAuth: s.NeedsAuth(),
	}
}

// redisSettings returns the same options under their Redis names, for CONFIG GET.
func redisSettings(s *config.Settings) map[string]string {
	seconds := func(d time.Duration) string { return strconv.Itoa(int((d + time.Second - 1) / time.Second)) }
	return map[string]string{
		"maxclients":         strconv.Itoa(s.MaxConns),
		"proto-max-bulk-len": strconv.Itoa(server.DefaultOptions().MaxBulk),
		"tcp-keepalive":      seconds(server.DefaultOptions().KeepAlive),
		"timeout":            seconds(s.IdleTimeout),
	}
}
