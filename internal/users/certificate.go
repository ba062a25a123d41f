package users

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
)

// certificateRule is the beginning of a rule that names a certificate of the user's clients.
const certificateRule = "certificate="

// addIdentity binds clients with a certificate to a user.
func (s *Set) addIdentity(u *User, identity string) error {
	kind, name, _ := strings.Cut(identity, ":")
	if name == "" || kind != "uri" && kind != "dns" && kind != "cn" {
		return errors.New("a certificate is named as certificate=uri:URI, certificate=dns:HOST or certificate=cn:NAME")
	}
	if other := s.certificates[identity]; other != nil {
		return fmt.Errorf("%s is of user %s already", quote(certificateRule+identity), quote(other.Name))
	}
	s.certificates[identity] = u
	u.identities = append(u.identities, identity)
	return nil
}

// identities returns the names of a certificate by which a user may be bound to it: its
// URIs, or without any its DNS names, or without those its common name. A certificate with a
// URI is thus never known by a weaker name.
func identities(c *x509.Certificate) (all []string) {
	for _, uri := range c.URIs {
		all = append(all, "uri:"+uri.String())
	}
	if all != nil {
		return all
	}
	for _, name := range c.DNSNames {
		all = append(all, "dns:"+name)
	}
	if all == nil && c.Subject.CommonName != "" {
		all = []string{"cn:" + c.Subject.CommonName}
	}
	return all
}

// ByCertificate returns the user of clients with a verified certificate, or nil. No certificate
// is of a user unless a rule of the file says so.
func (s *Set) ByCertificate(c *x509.Certificate) *User {
	for _, identity := range identities(c) {
		if u := s.certificates[identity]; u != nil && u.Enabled {
			return u
		}
	}
	return nil
}
