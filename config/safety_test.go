package config

import (
	"strings"
	"testing"
)

func TestValidateKnowsWhatOthersCanReach(t *testing.T) {
	for addr, safe := range map[string]bool{
		"127.0.0.1:6380": true, "127.1.2.3:0": true, "localhost:6380": true, "LocalHost:6380": true,
		"[::1]:6380": true, "[::ffff:127.0.0.1]:6380": true,
		"0.0.0.0:6380": false, ":6380": false, "[::]:6380": false, "[::ffff:0.0.0.0]:6380": false,
		"10.0.0.1:6380": false, "203.0.113.7:6380": false, "[2001:db8::1]:6380": false, "[fe80::1%eth0]:6380": false,
		"example.com:6380": false, "localhost.example.com:6380": false, "127.1:6380": false, "0:6380": false,
	} {
		for _, s := range []Settings{{Listen: addr}, {Listen: "localhost:1", Admin: addr}} {
			if err := s.Validate(); (err == nil) != safe {
				t.Errorf("%+v: %v, want safe: %v", s, err, safe)
			}
			s.UnsafeOpen = true
			if err := s.Validate(); err != nil {
				t.Errorf("%s with unsafe_open: %v", addr, err)
			}
		}
	}
}

func TestValidateListsEverything(t *testing.T) {
	s := Settings{Listen: "0.0.0.0:1", Admin: "nonsense", JSON: true}
	const want = "listen 0.0.0.0:1 is no loopback address, and would let anybody on the network spend quotas: listen on 127.0.0.1, set --users so that clients need a password, or --tls-client-ca so that they need a certificate, or say --unsafe-open if a network policy protects it\n" +
		"admin: \"nonsense\" is not host:port; write for example 127.0.0.1:6380\n" +
		"it says how to print; add --print-config"
	if err := s.Validate(); err == nil || err.Error() != want {
		t.Errorf("Validate says\n%v\nwant\n%s", err, want)
	}
}

// Load and Validate must agree on the same settings.
func TestLoadValidates(t *testing.T) {
	for _, flag := range []string{"--listen", "--admin"} {
		args := []string{flag, "0.0.0.0:7380"}
		if _, _, err := load(args, nil, ""); err == nil || !strings.HasPrefix(err.Error(), "flag "+flag+": ") {
			t.Errorf("%q: %v", args, err)
		}
		if s, _, err := load(append(args, "--unsafe-open"), nil, ""); err != nil || s.Validate() != nil {
			t.Errorf("%q with --unsafe-open: %v", args, err)
		}
	}
}
