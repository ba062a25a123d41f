package users

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// MaxFileBytes bounds a file, which is held while it is parsed.
const MaxFileBytes = 16 << 20

const (
	// maxUsers bounds what ACL LIST replies.
	maxUsers = 10_000
	// maxPasswords is the maximum number of Argon2id hashes of one user: a second one is for
	// the time of a rotation, and each costs its time for a wrong password.
	maxPasswords = 2
	// maxName bounds the name of a user, which CLIENT LIST shows for each connection, in bytes.
	maxName = 256
	// maxMistakes is the maximum number of mistakes in an error: the wrong file has one in each
	// of its lines.
	maxMistakes = 20
)

// errMore stands for the mistakes beyond maxMistakes.
var errMore = errors.New("and more mistakes")

// Parse parses a file of users. The error lists the first mistakes, one a line, each with the
// number of its line.
func Parse(content []byte) (*Set, error) {
	s := &Set{users: map[string]*User{}, certificates: map[string]*User{}}
	if len(content) > MaxFileBytes {
		return nil, fmt.Errorf("the file has more than %d bytes", MaxFileBytes)
	}
	var errs []error
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(content, []byte("\uFEFF")))) // editors write a byte order mark
	lines.Buffer(nil, MaxFileBytes+1)
	for n := 1; lines.Scan(); n++ {
		err := s.parseLine(lines.Text(), n)
		if err != nil && len(errs) == maxMistakes {
			errs = append(errs, errMore)
			break
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", n, err))
		}
	}
	if err := errors.Join(append(errs, lines.Err())...); err != nil {
		return nil, err
	}
	s.decoy = newDecoy(s.order)
	return s, nil
}

// ofLine matches a mistake in a line of an error of Parse.
var ofLine = regexp.MustCompile(`(?m)^line (\d+): `)

// Placed returns an error about a file of users with the place of each mistake as FILE:LINE.
func Placed(file string, err error) error {
	text := ofLine.ReplaceAllStringFunc(err.Error(), func(line string) string {
		return file + ":" + strings.TrimPrefix(line, "line ")
	})
	if text == err.Error() {
		return fmt.Errorf("%s: %w", file, err)
	}
	return errors.New(text)
}

// parseLine parses a user, a comment or an empty line.
func (s *Set) parseLine(line string, n int) error {
	words := strings.Fields(line)
	switch {
	case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		return nil
	case words[0] != "user" || len(words) == 1:
		return errors.New("a line begins with user and a name, as in: user acme on #HASH ~acme +@check")
	case isRule(words[1], words[2:]):
		return errors.New("behind user is a name, and this line has a rule there: write for example user acme on #HASH ~acme +@check")
	case len(words[1]) > maxName:
		return fmt.Errorf("a name has at most %d bytes", maxName)
	case len(s.order) == maxUsers:
		return fmt.Errorf("there are more than %d users", maxUsers)
	}
	u := &User{Name: words[1], line: n}
	if other := s.users[u.Name]; other != nil {
		return fmt.Errorf("user %s is in line %d already", quote(u.Name), other.line)
	}
	s.users[u.Name] = u
	s.order = append(s.order, u)
	for i, rule := range words[2:] {
		switch err := s.apply(u, rule); {
		case errors.Is(err, errUnknownRule): // which may be a password
			return fmt.Errorf("user %s: word %d of the line is no rule: %w", quote(u.Name), i+3, err)
		case err != nil:
			return fmt.Errorf("user %s: %w", quote(u.Name), err)
		}
	}
	if u.Enabled && !u.NoPassword && u.PasswordCount() == 0 && len(u.identities) == 0 {
		return fmt.Errorf("user %s is on, but has no password: limitgate hash-password makes a hash", quote(u.Name))
	}
	return nil
}

// isRule reports whether the word behind user is most likely a rule: on and off are names in front of
// another one of these.
func isRule(word string, rest []string) bool {
	switch strings.ToLower(word) {
	case "on", "off":
		return !slices.ContainsFunc(rest, func(rule string) bool { return strings.EqualFold(rule, "on") || strings.EqualFold(rule, "off") })
	}
	return word[0] == '~' || word[0] == '#' || word[0] == '>' || strings.HasPrefix(word, "+@")
}

// quote quotes a word of the file and limits its length.
func quote(word string) string { return fmt.Sprintf("%.64q", word) }

// apply applies one rule to a user.
func (s *Set) apply(u *User, rule string) error {
	if u.applySwitch(strings.ToLower(rule)) {
		return nil
	}
	switch first, rest := rule[0], rule[1:]; {
	case first == '#':
		return u.addSecret(rest)
	case first == '$':
		return u.addPassword(rule)
	case first == '~':
		return u.addTenants(rest)
	case first == '+' || first == '-':
		return u.changeGroups(first == '+', rest)
	case strings.HasPrefix(rule, certificateRule):
		return s.addIdentity(u, strings.TrimPrefix(rule, certificateRule))
	}
	return refuse(rule)
}

// applySwitch applies a rule that is one fixed word. Channels have no effect: there are none.
func (u *User) applySwitch(rule string) (ok bool) {
	switch rule {
	case "on", "off":
		u.Enabled, u.disabled = rule == "on", rule == "off"
	case "nopass":
		u.NoPassword, u.secrets, u.passwords = true, nil, nil
	case "resetpass":
		u.NoPassword, u.secrets, u.passwords = false, nil, nil
	case "allkeys", "~*":
		u.allTenants, u.tenants = true, nil
	case "resetkeys":
		u.allTenants, u.tenants = false, nil
	case "allcommands":
		u.groups = all
	case "nocommands":
		u.groups = 0
	case "&*", "allchannels", "resetchannels", "sanitize-payload", "skip-sanitize-payload":
	default:
		return false
	}
	return true
}

// addSecret adds the hash of a generated password.
func (u *User) addSecret(text string) error {
	hash, ok := parseSecret(text)
	if !ok && strings.HasPrefix(text, "$argon2id$") {
		return errors.New("an Argon2id hash has no # in front: it begins with $argon2id$")
	}
	if !ok && strings.Trim(text, "#") == "" {
		return errors.New("a comment has a line of its own, which begins with #")
	}
	if !ok {
		return errors.New("behind # are the 64 hexadecimal digits of a SHA-256; limitgate hash-password makes them")
	}
	u.NoPassword = false
	u.secrets = append(u.secrets, hash)
	return nil
}

// addPassword adds the hash of a password that was chosen.
func (u *User) addPassword(text string) error {
	hash, err := parsePassword(text)
	if err != nil {
		return err
	}
	if len(u.passwords) == maxPasswords {
		return fmt.Errorf("a user has at most %d hashes of Argon2id", maxPasswords)
	}
	u.NoPassword = false
	u.passwords = append(u.passwords, hash)
	return nil
}

// addTenants adds a pattern.
func (u *User) addTenants(text string) error {
	p, ok := parsePattern(text)
	switch {
	case !ok:
		return fmt.Errorf(`%s is neither a tenant nor the beginning of tenants; write ~acme, ~team-*, or \* for the character`, quote("~"+text))
	case p == pattern{name: "-"}:
		return errors.New("- stands for the tenant of a user, and is no name of one")
	case u.allTenants:
		return fmt.Errorf("%s adds nothing to ~*", quote("~"+text))
	}
	u.tenants = append(u.tenants, p)
	return nil
}

// changeGroups adds groups to those of a user, or takes them away.
func (u *User) changeGroups(add bool, text string) error {
	name, ok := strings.CutPrefix(text, "@")
	groups, known := parseGroups(name)
	switch {
	case !ok:
		return fmt.Errorf("%s is a command, and rights are given for groups: @check, @read, @dialects, @admin, @bypass and @all", quote(text))
	case !known:
		return fmt.Errorf("%s is not a group; there are @check, @read, @dialects, @admin, @bypass and @all", quote(text))
	case add:
		u.groups |= groups
	default:
		u.emptied = u.emptied || u.groups != 0 && groups == all
		u.groups &^= groups
	}
	return nil
}

var errUnknownRule = errors.New("a password stands there as a hash, which limitgate hash-password makes, and a tenant is written ~acme; rules are on, off, nopass, #HASH, $argon2id$..., ~TENANT, ~PREFIX*, +@GROUP, -@GROUP and certificate=")

// refuse returns the error for a rule that a file must not have.
func refuse(rule string) error {
	switch {
	case rule[0] == '>' || rule[0] == '<': // the rest is a password
		return errors.New("a file holds hashes and no passwords: limitgate hash-password makes a hash")
	case rule[0] == '!' || strings.EqualFold(rule, "reset"):
		return fmt.Errorf("%s takes away what the line has given: leave both out", quote(rule[:min(len(rule), 5)]))
	case rule[0] == '%' || rule[0] == '(':
		return errors.New("rights for reading or writing of keys, and selectors, are not supported: write ~acme +@check")
	case rule[0] == '&':
		return errors.New("there are no channels: leave the rule out")
	}
	return errUnknownRule
}
