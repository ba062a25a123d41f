package bench

import (
	"errors"
	"os"
)

// fewestCores is the number of cores from which client, proxy and Redis get cores of their
// own: two, three and one.
const fewestCores = 6

// coreSets are the cores of the processes of a case; all are empty if nothing is pinned.
type coreSets struct{ all, client, proxy, store []int }

// divideCores divides the cores. Redis, which has one thread, gets one, and the client two
// fifths of the others.
func divideCores(all []int) coreSets {
	if len(all) < fewestCores {
		return coreSets{all: all}
	}
	clients := 1 + (len(all)-1)*2/5
	return coreSets{all: all, store: all[:1], client: all[1:clients], proxy: all[clients:]}
}

// pinClient pins this process. The result lets it run on all cores again.
func (s coreSets) pinClient() (unpin func() error, err error) {
	if len(s.client) == 0 {
		return func() error { return nil }, nil
	}
	return func() error { return pin(os.Getpid(), s.all) }, pin(os.Getpid(), s.client)
}

// pinServers pins the proxy and Redis.
func (s coreSets) pinServers(p parts) error {
	var errs []error
	for _, pid := range p.proxy {
		errs = append(errs, pin(pid, s.proxy))
	}
	for _, pid := range p.store {
		errs = append(errs, pin(pid, s.store))
	}
	return errors.Join(errs...)
}
