package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/awsclient"
	"github.com/limitgate/limitgate/internal/redisauth"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/internal/tlsfiles"
)

// iamConnAge is the largest age of a connection that was opened with a token of IAM: AWS ends
// it after twelve hours.
const iamConnAge = 11 * time.Hour

// RedisClient is how the settings connect to Redis.
type RedisClient struct {
	Options cluster.Options
	// Parts run while there are connections.
	Parts []run.Part
	// CertExpires returns the time until which the certificate of the client is valid. It is
	// nil without one.
	CertExpires func() time.Time
}

// NewRedisClient returns how the settings connect to Redis, doctor too.
func NewRedisClient(ctx context.Context, s *config.Settings, log *slog.Logger) (c RedisClient, err error) {
	o := &c.Options
	*o = cluster.Options{Addrs: s.Redis.Addrs, DB: s.Redis.DB, DeclaredKeys: s.RedisDeclaredKeys, Log: log}
	if s.RedisSentinel.Master != "" {
		o.Sentinel, o.Addrs, o.DB = s.RedisSentinel.Master, s.RedisSentinel.Nodes.Addrs, s.RedisSentinel.Nodes.DB
	}
	if s.UsesRedisTLS() {
		client, err := tlsfiles.NewClient(tlsfiles.ClientOptions{
			CA: s.RedisTLSCA, Cert: s.RedisTLSCert, Key: s.RedisTLSKey, ServerName: s.RedisTLSServerName,
			Failed: func(err error) {
				log.Error("failed to read the TLS files of Redis, using the earlier ones", "error", err)
			},
		})
		if err != nil {
			return c, fmt.Errorf("connect to Redis: %w", err)
		}
		o.TLS = client.Config
		if s.RedisTLSCert != "" {
			c.CertExpires = client.Expires
		}
	}
	switch {
	case s.RedisAuth == "iam":
		o.MaxConnAge = iamConnAge
		o.Credentials, err = iamCredentials(ctx, s)
	case s.RedisPasswordSecret != "":
		var secret *redisauth.Secret
		if secret, err = secretCredentials(ctx, s, log); err == nil {
			o.Credentials, c.Parts = secret, append(c.Parts, secret.Run)
		}
	case s.RedisPasswordFile != "":
		o.Credentials = &redisauth.File{User: s.RedisUser, Read: func() (string, error) { return config.ReadPassword(s.RedisPasswordFile) }}
		_, err = config.ReadPassword(s.RedisPasswordFile)
	case s.RedisPassword != "":
		o.Credentials = &redisauth.File{User: s.RedisUser, Read: func() (string, error) { return s.RedisPassword, nil }}
	}
	if err != nil {
		return c, fmt.Errorf("connect to Redis: %w", err)
	}
	return c, nil
}

// iamCredentials returns tokens of AWS IAM, after it has made one.
func iamCredentials(ctx context.Context, s *config.Settings) (cluster.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, awsclient.Timeout)
	defer cancel()
	aws, err := awsclient.Load(ctx)
	if err != nil {
		return nil, err
	}
	c := s.RedisIAMCache
	iam, err := redisauth.NewIAM(aws, redisauth.IAMOptions{Cache: c.Name, Serverless: c.Serverless, MemoryDB: c.MemoryDB, User: s.RedisUser})
	if err != nil {
		return nil, err
	}
	_, _, err = iam.Credentials(ctx)
	return iam, err
}

// secretCredentials returns the password of a secret, after it has read it.
func secretCredentials(ctx context.Context, s *config.Settings, log *slog.Logger) (*redisauth.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, awsclient.Timeout)
	defer cancel()
	aws, err := awsclient.Load(ctx)
	if err != nil {
		return nil, err
	}
	secret := redisauth.NewSecret(redisauth.SecretsManager(aws, s.RedisPasswordSecret), s.RedisUser, log)
	_, _, err = secret.Credentials(ctx)
	return secret, err
}
