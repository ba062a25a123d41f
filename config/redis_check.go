package config

// redisProblems checks the settings of the connections to Redis.
func (s *Settings) redisProblems() (all []problem) {
	check := func(wrong bool, name, text string) {
		if wrong {
			all = append(all, problem{name, text})
		}
	}
	if !s.UsesRedis() {
		for _, of := range []struct {
			name string
			set  bool
		}{
			{"redis.tls", s.RedisTLS},
			{"redis.user", s.RedisUser != ""},
			{"redis.password_file", s.RedisPasswordFile != ""},
			{"redis.password_secret", s.RedisPasswordSecret != ""},
			{"redis.auth", s.RedisAuth == "iam"},
			{"redis.iam_cache", s.RedisIAMCache.Name != ""},
			{"redis.tls_ca", s.RedisTLSCA != ""},
			{"redis.tls_cert", s.RedisTLSCert != ""},
			{"redis.tls_key", s.RedisTLSKey != ""},
			{"redis.tls_server_name", s.RedisTLSServerName != ""},
			{"ready_needs_store", s.ReadyNeedsStore},
		} {
			check(of.set, of.name, "it is for a Redis, and there is none: name one by --redis")
		}
		return all
	}
	password := s.RedisPasswordFile != "" || s.RedisPasswordSecret != ""
	iam := s.RedisAuth == "iam"
	check(len(s.Redis.Addrs) > 0 && s.RedisSentinel.Master != "", "redis.sentinel", "the Sentinels know the address of the master: leave out --redis")
	check((s.RedisTLSCert == "") != (s.RedisTLSKey == ""), "redis.tls_cert", "a certificate needs its key: set --redis-tls-cert and --redis-tls-key")
	for _, of := range []struct{ name, value string }{
		{"redis.tls_ca", s.RedisTLSCA}, {"redis.tls_server_name", s.RedisTLSServerName}, {"redis.tls_cert", s.RedisTLSCert},
	} {
		check(of.value != "" && !s.UsesRedisTLS(), of.name, "the connections to Redis are not encrypted: set --redis-tls")
	}
	check(s.RedisPasswordFile != "" && s.RedisPasswordSecret != "", "redis.password_secret", "the password is in a file or in a secret: set one of them")
	check(iam && password, "redis.auth", "tokens of IAM are instead of a password: leave out the password")
	check(iam && !s.UsesRedisTLS(), "redis.auth", "AWS takes tokens of IAM over TLS only: set --redis-tls")
	check(iam && (s.RedisUser == "" || s.RedisIAMCache.Name == ""), "redis.auth", "tokens of IAM are for a user of a cache: set --redis-user and --redis-iam-cache")
	check(!iam && s.RedisIAMCache.Name != "", "redis.iam_cache", "it is for tokens of IAM: set --redis-auth iam")
	check(s.RedisUser != "" && !iam && !password, "redis.user", "the user needs a password: set --redis-password-file or --redis-password-secret")
	return all
}
