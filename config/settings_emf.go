package config

import (
	"errors"
	"fmt"
	"strings"
)

// EMF are the settings of lines in CloudWatch's embedded metric format.
type EMF struct {
	// Sink is EMFStdout, EMFFilePrefix and a path, or EMFTCPPrefix and a host:port; empty is off.
	Sink string
	// Service is the dimension Service of the metrics.
	Service string
}

// The forms of EMF.Sink.
const (
	EMFStdout     = "stdout"
	EMFFilePrefix = "file:"
	EMFTCPPrefix  = "tcp:"
)

// emfSettings are the settings of lines in CloudWatch's embedded metric format.
func emfSettings(s *Settings) settings {
	e := &s.EMF
	return settings{
		{
			name: "emf.sink", short: "emf", group: groupLog,
			usage: "where metrics are written each second in CloudWatch's embedded format; empty is nowhere", value: optional(emfSink(&e.Sink), &e.Sink),
		},
		{
			name: "emf.service", group: groupLog, initial: "limitgate",
			usage: "the dimension Service of these metrics", value: emfService(&e.Service),
		},
	}
}

// emfSink parses where lines of metrics go.
func emfSink(to *string) value {
	return value{arg: "stdout|file:PATH|tcp:HOST:PORT", shape: stringOnly, read: func(text string) error {
		path, toFile := strings.CutPrefix(text, EMFFilePrefix)
		addr, toAgent := strings.CutPrefix(text, EMFTCPPrefix)
		switch {
		case text == EMFStdout:
		case toFile && path != "" && !strings.ContainsRune(path, 0):
		case toAgent:
			if err := checkAddress(addr, 1, "25888"); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is none of the choices; write stdout, file:/var/log/limitgate/emf.json or tcp:127.0.0.1:25888", Quote(text))
		}
		*to = text
		return nil
	}}
}

// maxDimension bounds the value of a dimension of CloudWatch, in bytes.
const maxDimension = 255

// emfService parses the value of a dimension.
func emfService(to *string) value {
	return value{arg: "NAME", shape: stringOnly, read: func(text string) error {
		switch {
		case strings.TrimSpace(text) == "" || strings.HasPrefix(text, ":") || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
			return errors.New("a dimension of CloudWatch has characters of ASCII, and no colon in front; write for example limitgate-eu")
		case len(text) > maxDimension:
			return fmt.Errorf("it has %d bytes, at most %d", len(text), maxDimension)
		}
		*to = text
		return nil
	}}
}
