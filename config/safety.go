package config

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// check reports settings that contradict each other or are not safe.
func (s *Settings) check() []error {
	var errs []error
	if err := s.checkAddress("listen", s.Listen, "spend quotas"); err != nil {
		errs = append(errs, err)
	}
	if s.Admin != "" {
		if err := s.checkAddress("admin", s.Admin, "read metrics"); err != nil {
			errs = append(errs, err)
		}
	}
	for _, addr := range s.Redis {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			errs = append(errs, fmt.Errorf("redis: %.64q is not an address: write host:port", addr))
		}
	}
	return errs
}

// checkAddress refuses an address that others on the network can reach, until
// somebody says that this is meant.
func (s *Settings) checkAddress(name, addr, harm string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" || strings.HasPrefix(addr, "unix:") {
		return fmt.Errorf("%s: %.64q is not an address: write host:port, for example 127.0.0.1:6380 (unix sockets are not supported)", name, addr)
	}
	if s.UnsafeOpen || isLoopback(host) {
		return nil
	}
	return fmt.Errorf("%s: %s would let anybody on the network %s: listen on 127.0.0.1, or say --unsafe-open if a network policy protects it", name, addr, harm)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
