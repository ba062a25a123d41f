package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// SamePort is part of the error of two settings that listen on one port.
const SamePort = " have the same port "

// clash is two settings that cannot listen at once, and a text that follows their names.
type clash struct {
	names [2]string
	text  string
}

// clashes returns the pairs of settings that listen on one address. Port 0 is another one each time.
func (s *Settings) clashes() (all []clash) {
	type listener struct{ name, addr string }
	listeners := []listener{{"listen", s.Listen}, {"admin", s.Admin}, {"http.listen", s.HTTP.Listen}}
	if s.RLS.Listen != "" {
		listeners = append(listeners, listener{"rls.listen", s.RLS.Listen}, listener{"rls.http", s.RLS.HTTP}, listener{"rls.debug", s.RLS.Debug})
	}
	for i, l := range listeners {
		for _, earlier := range listeners[:i] {
			if text := samePort(earlier.addr, l.addr); text != "" {
				all = append(all, clash{[2]string{earlier.name, l.name}, text})
			}
		}
	}
	for _, l := range listeners {
		for _, addr := range s.Redis.Addrs {
			if ownAddr(l.addr, addr) {
				all = append(all, clash{[2]string{l.name, "redis.addrs"}, fmt.Sprintf(" have the same address %s, and a proxy is no Redis: name the nodes of Redis, or listen on another port", addr)})
			}
		}
	}
	return all
}

// ownAddr reports whether a listener has the address of a node, which is on this machine then.
func ownAddr(listener, node string) bool {
	host, port, err := net.SplitHostPort(listener)
	nodeHost, nodePort, nodeErr := net.SplitHostPort(node)
	if cmp.Or(err, nodeErr) != nil || port != nodePort || port == "0" {
		return false
	}
	ip, all := hostAddr(host)
	nodeIP, nodeAll := hostAddr(nodeHost)
	if all {
		return nodeAll || nodeIP.IsLoopback()
	}
	return ip.IsValid() && ip == nodeIP
}

// samePort returns that two addresses cannot be listened on at once, and how to mend that, or "".
func samePort(a, b string) string {
	if path, unix := strings.CutPrefix(a, UnixPrefix); unix && a == b {
		return " have the same socket " + Quote(path) + ": set another path by one of them"
	}
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	numberA, badA := strconv.ParseUint(portA, 10, 16)
	numberB, badB := strconv.ParseUint(portB, 10, 16)
	if cmp.Or(errA, errB, badA, badB) != nil || numberA != numberB || numberA == 0 || !sameHost(hostA, hostB) {
		return ""
	}
	of := a
	if a != b {
		of += " and " + b
	}
	return fmt.Sprintf("%s%d (%s): set another port by one of them", SamePort, numberA, of)
}

// sameHost reports whether two hosts to listen on have an address in common, as far as their texts show.
func sameHost(a, b string) bool {
	ipA, allA := hostAddr(a)
	ipB, allB := hostAddr(b)
	switch {
	case allA && allB, strings.EqualFold(a, b):
		return true
	case allA:
		return !ipA.Is4() || !ipB.Is6()
	case allB:
		return !ipB.Is4() || !ipA.Is6()
	}
	return ipA.IsValid() && ipA == ipB
}

// hostAddr returns the address of a host to listen on, which is invalid for a name that has to be resolved.
// All reports that it stands for every address of this machine: of IPv4 alone if it is of IPv4.
func hostAddr(host string) (ip netip.Addr, all bool) {
	switch {
	case host == "":
		return netip.IPv6Unspecified(), true
	case strings.EqualFold(host, "localhost"):
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), false
	}
	ip, _ = netip.ParseAddr(host)
	ip = ip.Unmap()
	return ip, ip.IsValid() && ip.IsUnspecified()
}
