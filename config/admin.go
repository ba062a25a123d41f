package config

import (
	"errors"
	"slices"
)

// Admin is where a proxy serves its health.
type Admin struct {
	Addr string // a host:port; empty is off
	TLS  bool   // whether it speaks TLS
}

// ReadAdmin returns the admin address that serve has without flags, by the environment and a
// settings file; an empty path is that of the environment. It does not check whether the settings
// suit each other, since flags of serve may add to them.
func ReadAdmin(path string, environ []string, readFile func(string) ([]byte, error)) (Admin, error) {
	s := new(Settings)
	t := newTable(s)
	var args []string
	if path != "" {
		args = []string{"--config=" + path}
	}
	flags, _, _ := readFlags(t, args)
	env := readEnvironment(t, environ)
	file := readSettingsFile(t, configPath(env, flags), readFile)
	l := loading{used: map[*setting]given{}, failed: map[string]bool{}}
	for _, src := range []*source{defaults(t), file, env, flags} {
		l.apply(src)
	}
	if err := errors.Join(slices.Concat(flags.errs(), env.errs(), file.errs())...); err != nil {
		return Admin{}, err
	}
	return Admin{Addr: s.Admin, TLS: s.TLSCert != ""}, nil
}
