package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// problem is what is wrong with a setting in view of the others.
type problem struct{ name, text string }

// Validate checks what no setting can tell alone. The rule that matters: an
// address that others on the network can reach is refused, unless UnsafeOpen
// says that something else protects it. Load has called it already; it is for
// settings that were made otherwise. The error lists all that is wrong, one a
// line.
func (s *Settings) Validate() error {
	var errs []error
	for _, p := range s.problems() {
		errs = append(errs, errors.New(p.text))
	}
	return errors.Join(errs...)
}

func (s *Settings) problems() []problem {
	all := s.checkListener("listen", s.Listen, "let anybody on the network spend quotas")
	if s.Admin != "" {
		all = append(all, s.checkListener("admin", s.Admin, "show metrics and profiles to anybody on the network")...)
	}
	if s.Instances.Source == InstancesHeartbeat && len(s.Redis) == 0 {
		all = append(all, problem{"instances", "heartbeat is kept in a Redis, and there is none: name one by --redis, or give the number of proxies"})
	}
	if s.Cell != "" && (s.LimitsTable() == "" || s.CellsTable == "") {
		all = append(all, problem{"cell", "cells share limits that are in a table, and are registered in one: say --limits dynamodb://TABLE and --cells-table TABLE"})
	}
	if s.RolloutGate != "" && s.LimitsTable() == "" {
		all = append(all, problem{"rollout_gate", "it is for limits in a table: say --limits dynamodb://TABLE, or --limits-canary for a file"})
	}
	if s.RolloutGate != "" && s.CellsTable == "" {
		all = append(all, problem{"rollout_gate", "a proxy that takes a revision back tells the others by the table of cells: say --cells-table TABLE, which needs no cells"})
	}
	if s.LimitsCanary > 0 && (s.Limits == "" || s.LimitsTable() != "") {
		all = append(all, problem{"limits_canary", "it tries changes of a limits file, and there is none: those of a table are tried by limitgate rollout"})
	}
	if s.JSON && !s.PrintConfig {
		all = append(all, problem{"json", "it says how to print; add --print-config"})
	}
	return all
}

// checkListener checks an address; would is what becomes of it in the open.
func (s *Settings) checkListener(name, addr, would string) []problem {
	if err := checkAddress(addr, 0); err != nil {
		return []problem{{name, fmt.Sprintf("%s: %s", name, err)}}
	}
	if s.UnsafeOpen || isLoopback(addr) {
		return nil
	}
	return []problem{{name, fmt.Sprintf("%s %s would %s: listen on 127.0.0.1, or say --unsafe-open if a network policy protects it", name, addr, would)}}
}

// isLoopback says whether only this machine can reach a well-formed address. Of
// names it believes localhost alone: what others resolve to can change.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}
