package users

import (
	"slices"
	"strings"
	"time"
)

// User is a user of a Set. It does not change, and is safe for concurrent use.
type User struct {
	Name string
	// Enabled users can authenticate.
	Enabled bool
	// disabled reports that the file says off.
	disabled bool
	// NoPassword means that any password is right.
	NoPassword bool
	// Until is the end of the right to use the connection without another AUTH; zero is
	// never.
	Until time.Time

	groups     Groups
	allTenants bool
	tenants    []pattern
	secrets    []secret
	passwords  []password
	identities []string // of certificates, see certificate.go
	emptied    bool     // -@all took groups away
	line       int      // in the file
}

// DefaultName is the name of the user of connections that have not authenticated.
const DefaultName = "default"

// Unrestricted is the user of all connections if there is no file of users.
var Unrestricted = &User{Name: DefaultName, Enabled: true, NoPassword: true, groups: all, allTenants: true}

// TokenName is the name of users that authenticate with a token.
const TokenName = "jwt"

// newTokenUser returns the user of a token.
func newTokenUser(tenant string, until time.Time) *User {
	return &User{Name: TokenName, Enabled: true, Until: until, groups: Check | Read, tenants: []pattern{{name: tenant}}}
}

// May reports whether the user has one of the groups.
func (u *User) May(groups Groups) bool { return u.groups&groups != 0 }

// MayUse reports whether the user may use a tenant, or a key of a dialect.
func (u *User) MayUse(tenant string) bool { return u.allTenants || matchAny(u.tenants, tenant) }

// MayUseAll reports whether the user may use all tenants.
func (u *User) MayUseAll() bool { return u.allTenants }

// MayAll reports whether the user may send every command for every tenant.
func (u *User) MayAll() bool { return u.allTenants && u.groups == all }

// Tenant returns the tenant that the user is bound to, or "" if it may use more than one.
func (u *User) Tenant() string {
	if u.allTenants || len(u.tenants) != 1 || u.tenants[0].prefix {
		return ""
	}
	return u.tenants[0].name
}

// Groups returns the user's groups as rules.
func (u *User) Groups() string { return u.groups.String() }

// Patterns returns the user's tenants as rules.
func (u *User) Patterns() string {
	if u.allTenants {
		return "~*"
	}
	var all []string
	for _, p := range u.tenants {
		all = append(all, "~"+p.String())
	}
	return strings.Join(all, " ")
}

// Channels returns the user's channels as a rule: there are none to restrict.
func (u *User) Channels() string {
	if u.allTenants {
		return "&*"
	}
	return ""
}

// PasswordCount returns the number of the user's passwords.
func (u *User) PasswordCount() int { return len(u.secrets) + len(u.passwords) }

// Hidden stands for the hash of a password, which clients need not read.
const Hidden = "#<hidden>"

// String returns the rules of the user, without hashes.
func (u *User) String() string {
	words := []string{"user", u.Name, "off"}
	if u.Enabled {
		words[2] = "on"
	}
	if u.NoPassword {
		words = append(words, "nopass")
	}
	for range u.PasswordCount() {
		words = append(words, Hidden)
	}
	for _, id := range u.identities {
		words = append(words, certificateRule+id)
	}
	if tenants := u.Patterns(); tenants != "" {
		words = append(words, tenants)
	}
	channels := u.Channels()
	if channels == "" {
		channels = "resetchannels"
	}
	words = append(words, channels)
	return strings.Join(append(words, u.groups.String()), " ")
}

// keeps reports whether connections of a former user may go on as those of u: the rights are the
// same, and so is each way to log in that the connections may have taken. There may be more of
// those, so that passwords can be replaced.
func (u *User) keeps(former *User) bool {
	return u.Enabled == former.Enabled && u.NoPassword == former.NoPassword && u.groups == former.groups &&
		u.allTenants == former.allTenants && slices.Equal(u.tenants, former.tenants) &&
		hasAll(u.secrets, former.secrets) && hasAll(u.identities, former.identities) && hasAll(u.hashes(), former.hashes())
}

// hashes returns the texts of the passwords.
func (u *User) hashes() (all []string) {
	for i := range u.passwords {
		all = append(all, u.passwords[i].text)
	}
	return all
}

// hasAll reports whether all members of some are in of.
func hasAll[T comparable](of, some []T) bool {
	return !slices.ContainsFunc(some, func(member T) bool { return !slices.Contains(of, member) })
}
