package bench

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/limitgate/limitgate/internal/load"
)

// secured is how the connections of a proxy's clients are secured; zero is not at all.
type secured struct {
	flags []string // of the proxy
	tls   *encryption
	login *load.Request
}

// options adds the security to the options of a load.
func (s *secured) options(o load.Options) load.Options {
	if s.tls != nil {
		o.TLS = s.tls.client
	}
	o.Login = s.login
	return o
}

// secure prepares the security of a side.
func (g gate) secure(l *lab) (s secured, err error) {
	if g.tls {
		if s.tls, err = l.encryption(); err != nil {
			return s, err
		}
		s.flags = slices.Concat(s.flags, s.tls.flags)
	}
	if g.users {
		path, err := l.writeFile("users.acl", usersFile())
		if err != nil {
			return s, err
		}
		s.flags = append(s.flags, "--users", path)
		s.login = load.NewRequest("AUTH", userName, userPassword)
	}
	return s, nil
}

// The user of the sides with users. A generated password costs one SHA-256 at login.
const (
	userName     = "bench"
	userPassword = "a-generated-password"
)

// usersFile has one user, who may check the tenants of the load by a pattern.
func usersFile() []byte {
	return fmt.Appendf(nil, "user %s on #%x ~t* +@check\n", userName, sha256.Sum256([]byte(userPassword)))
}
