package config

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The sources of Instances.
const (
	// InstancesStatic is a fixed number.
	InstancesStatic = "static"
	// InstancesHeartbeat is the number of proxies that send heartbeats to the store.
	InstancesHeartbeat = "heartbeat"
	// InstancesDNS is the number of addresses of a DNS name.
	InstancesDNS = "dns"
	// InstancesSRV is the number of SRV records of a DNS name.
	InstancesSRV = "dns+srv"
	// InstancesEDS is the number of healthy endpoints that an xDS server reports.
	InstancesEDS = "eds"
)

const (
	// maxInstances is the largest fixed number.
	maxInstances = 100_000
	// maxClusterName is the maximum length of the name of an EDS cluster: longer names do
	// not fit into a line of the log.
	maxClusterName = 256
	// instancesForms are the allowed forms of the setting.
	instancesForms = "a number, heartbeat, dns:NAME, dns+srv:NAME or eds:HOST:PORT/CLUSTER"
)

// Instances is the source of the number of proxies that share the limits.
type Instances struct {
	// Source is one of InstancesStatic, InstancesHeartbeat, InstancesDNS,
	// InstancesSRV and InstancesEDS.
	Source string
	// Count is the number, 1 to 100,000, with InstancesStatic.
	Count int
	// Name is the name in the DNS, or of the EDS cluster.
	Name string
	// Addr is the host:port of the xDS server, with InstancesEDS.
	Addr string
}

// String returns the text of the setting.
func (i Instances) String() string {
	switch i.Source {
	case InstancesStatic:
		return strconv.Itoa(i.Count)
	case InstancesHeartbeat:
		return i.Source
	case InstancesEDS:
		return i.Source + ":" + i.Addr + "/" + i.Name
	default:
		return i.Source + ":" + i.Name
	}
}

// instancesFrom parses a number, or its source.
func instancesFrom(to *Instances) value {
	number := whole(&to.Count, 1, maxInstances)
	return value{arg: "N|SOURCE", bounds: number.bounds, read: func(text string) error {
		source, rest, colon := strings.Cut(text, ":")
		read := Instances{Source: source, Name: rest}
		var err error
		switch {
		case isNumber(text):
			if err = number.read(text); err == nil {
				read = Instances{Source: InstancesStatic, Count: to.Count}
			}
		case text == InstancesHeartbeat:
		case colon && (source == InstancesDNS || source == InstancesSRV):
			err = checkName(rest)
		case colon && source == InstancesEDS:
			read.Addr, read.Name, err = splitEDS(rest)
		default:
			err = fmt.Errorf("%s is no number of proxies, and no source of one; write %s", Quote(text), instancesForms)
		}
		if err == nil {
			*to = read
		}
		return err
	}}
}

// isNumber reports whether a text looks like a number.
func isNumber(text string) bool {
	first := strings.TrimPrefix(text, "-")
	return first != "" && first[0] >= '0' && first[0] <= '9'
}

// checkName checks a name to be resolved by DNS.
func checkName(name string) error {
	if name == "" {
		return errors.New("the name is missing; write for example dns:limitgate.default.svc.cluster.local")
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return fmt.Errorf("%s is an address, which is always one; write the name of a headless service", Quote(name))
	}
	const most, mostLabel = 253, 63 // RFC 1035
	whole := strings.TrimSuffix(name, ".")
	if len(whole) > most {
		return fmt.Errorf("the name has %d bytes; names in the DNS have %d at most", len(whole), most)
	}
	for label := range strings.SplitSeq(whole, ".") {
		bad := strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
		})
		if label == "" || len(label) > mostLabel || bad {
			return fmt.Errorf("%s is not a name in the DNS; write letters, digits, - and _, with dots between parts of at most %d", Quote(name), mostLabel)
		}
	}
	return nil
}

// splitEDS parses HOST:PORT/CLUSTER.
func splitEDS(text string) (addr, cluster string, err error) {
	addr, cluster, _ = strings.Cut(text, "/")
	if addr == "" || cluster == "" {
		return "", "", fmt.Errorf("%s is not HOST:PORT/CLUSTER; write for example eds:127.0.0.1:18000/limitgate", Quote(text))
	}
	if err := checkNode(addr, "18000"); err != nil {
		return "", "", err
	}
	if len(cluster) > maxClusterName {
		return "", "", fmt.Errorf("the name of the cluster has %d bytes; it may have %d", len(cluster), maxClusterName)
	}
	if strings.ContainsFunc(cluster, func(r rune) bool { return r <= ' ' || r == 0x7f || r == utf8.RuneError }) {
		return "", "", fmt.Errorf("%s has a space or control character in it; write the name of an EDS cluster", Quote(cluster))
	}
	return addr, cluster, nil
}
