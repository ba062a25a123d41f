package users

import "slices"

// Set is the users of a file. It does not change, and is safe for concurrent use.
type Set struct {
	users        map[string]*User
	order        []*User
	certificates map[string]*User // by identity
	// decoy stands in for users that do not exist or are off: it has as many passwords as
	// the user with most, and none of them can be right.
	decoy *User
}

// newDecoy returns the user that stands in for those that do not exist.
func newDecoy(of []*User) *User {
	decoy := &User{secrets: []secret{{}}}
	for _, u := range of {
		if len(u.passwords) > len(decoy.passwords) {
			decoy.passwords = slices.Clone(u.passwords)
		}
	}
	for i := range decoy.passwords { // a hash that no password has
		decoy.passwords[i].text, decoy.passwords[i].hash = "", make([]byte, defaultHash)
	}
	return decoy
}

// All returns the users in the order of the file.
func (s *Set) All() []*User { return s.order }

// User returns the user of a name, or nil.
func (s *Set) User(name string) *User { return s.users[name] }

// Default returns the user of new connections, or nil if they must authenticate.
func (s *Set) Default() *User {
	if u := s.users[DefaultName]; u != nil && u.Enabled && u.NoPassword {
		return u
	}
	return nil
}

// Open returns a user that anybody may be, or nil.
func (s *Set) Open() *User {
	for _, u := range s.order {
		if u.Enabled && u.NoPassword {
			return u
		}
	}
	return nil
}

// NeedsCertificates returns a user that a certificate authenticates, or nil.
func (s *Set) NeedsCertificates() *User {
	for _, u := range s.order {
		if u.Enabled && len(u.identities) > 0 {
			return u
		}
	}
	return nil
}

// Incomplete returns the users whose lines lack a rule, without which they can do next to nothing, each
// as NAME: RULE: on, a group of commands, or a tenant to use them on.
func (s *Set) Incomplete() (all []string) {
	for _, u := range s.order {
		var lacks string
		switch {
		case !u.Enabled && !u.disabled:
			lacks = "on"
		case u.Enabled && u.groups == 0 && u.emptied:
			lacks = "+@GROUP behind -@all, which takes what +@GROUP before it gave"
		case u.Enabled && u.groups == 0:
			lacks = "+@GROUP"
		case u.Enabled && !u.allTenants && len(u.tenants) == 0:
			lacks = "~TENANT or ~*"
		default:
			continue
		}
		all = append(all, u.Name+": "+lacks)
	}
	return all
}

// Keeps reports whether connections of a user of an earlier Set may go on.
func (s *Set) Keeps(u *User) bool {
	if !u.Until.IsZero() {
		return true // it is of no Set
	}
	now := s.users[u.Name]
	return now != nil && now.Enabled && now.keeps(u)
}
