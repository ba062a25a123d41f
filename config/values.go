package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value parses and formats the text of a setting.
type value struct {
	arg    string // name of the text in help; "" for a switch, which needs none
	bounds string // allowed values, for help
	shape  shape
	read   func(text string) error
	show   func(text string) string // its form in --print-config; nil is as it is written
}

// shape is the kind of YAML node that the settings file may have for a value.
type shape int

const (
	anyScalar  shape = iota // any single value
	stringOnly              // a string, so that neither true nor 5 becomes a path by accident
	unquoted                // a number or a switch, never in quotes
	stringList              // a string, or a list of strings
)

func filePath(to *string) value {
	return value{arg: "FILE", shape: stringOnly, read: func(text string) error {
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("%s is not a path: it holds a zero byte", Quote(text))
		}
		*to = text
		return nil
	}}
}

// reference parses a text that names something outside of this program.
func reference(to *string, arg string) value {
	return value{arg: arg, shape: stringOnly, read: func(text string) error {
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' }) {
			return fmt.Errorf("%s is no %s: it holds blanks", Quote(text), arg)
		}
		*to = text
		return nil
	}}
}

// updates parses the ARN of an SNS topic or the URL of an SQS queue.
func updates(to *string) value {
	v := reference(to, "ARN|URL")
	read := v.read
	v.read = func(text string) error {
		if text != "" {
			if err := CheckUpdates(text); err != nil {
				return err
			}
		}
		return read(text)
	}
	return v
}

// CheckUpdates returns an error for a name of updates that is neither the ARN of an SNS topic nor the URL of
// an SQS queue.
func CheckUpdates(name string) error {
	if arn := strings.Split(name, ":"); strings.Contains(name, "://") || len(arn) == 6 && arn[0] == "arn" && arn[2] == "sns" && arn[5] != "" {
		return nil
	}
	return fmt.Errorf("%s is neither the ARN of an SNS topic nor the URL of an SQS queue: arn:aws:sns:REGION:ACCOUNT:TOPIC", Quote(name))
}

func toggle(to *bool) value {
	return value{shape: unquoted, read: func(text string) error {
		if text != "true" && text != "false" {
			return fmt.Errorf("%s is not a switch; write true or false", Quote(text))
		}
		*to = text == "true"
		return nil
	}}
}

func whole(to *int, least, most int) value {
	bounds := fmt.Sprintf("%d to %d", least, most)
	return value{arg: "N", bounds: bounds, shape: unquoted, read: func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return formError(func(example string) string { return NotWhole(text, example, least, most) })
		}
		if err != nil || n < least || n > most {
			return fmt.Errorf("%s is out of bounds; it must be from %s", plain(text), bounds)
		}
		*to = n
		return nil
	}}
}

// percentage parses a share, into hundredths of a percent.
func percentage(to *int) value {
	show := func(text string) string { return strings.TrimSuffix(text, "%") + "%" }
	return value{arg: "PERCENT", bounds: "0% to 100%", shape: stringOnly, show: show, read: func(text string) error {
		percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		hundredths := math.Round(percent * 100)
		if err != nil || !(percent >= 0 && percent <= 100) || math.Abs(hundredths-percent*100) > 1e-6 {
			return fmt.Errorf("%s is not a share: write 0%% to 100%%, with at most two digits behind the point", Quote(text))
		}
		if percent > 0 && percent < 1 && !strings.HasSuffix(text, "%") {
			return fmt.Errorf("%s is less than 1 %%: write %s%%, or %s%% for that share of all", Quote(text), plain(text), strconv.FormatFloat(hundredths, 'f', -1, 64))
		}
		*to = int(hundredths)
		return nil
	}}
}

func duration(to *time.Duration, least, most time.Duration) value {
	bounds := ShowDuration(least) + " to " + ShowDuration(most)
	return value{arg: "DURATION", bounds: bounds, read: func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil {
			d, _ = meantDuration(text)
		}
		if (err == nil || d > 0) && (d < least || d > most) {
			return fmt.Errorf("%s is out of bounds; it must be from %s", plain(text), bounds)
		}
		if err != nil {
			return formError(func(example string) string { return NotDuration(text, example, math.MaxInt64) })
		}
		*to = d
		return nil
	}}
}

// ShowDuration formats a duration as a setting or a flag takes it, without parts that are zero: 1m, not 1m0s.
func ShowDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// option is one of the words of a choice and its value.
type option[T any] struct {
	word string
	mean T
}

func word[T any](w string, mean T) option[T] { return option[T]{w, mean} }

func choice[T any](to *T, options ...option[T]) value {
	words := make([]string, len(options))
	for i, o := range options {
		words[i] = o.word
	}
	return value{arg: strings.Join(words, "|"), read: func(text string) error {
		for _, o := range options {
			if o.word == text {
				*to = o.mean
				return nil
			}
		}
		return fmt.Errorf("%s is none of the choices; write %s or %s",
			Quote(text), strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
	}}
}

// optional makes v accept an empty text.
func optional(v value, to *string) value {
	read := v.read
	v.read = func(text string) error {
		if text == "" {
			*to = ""
			return nil
		}
		err := read(text)
		if err != nil && slices.Contains([]string{"off", "none", "no", "false", "disabled"}, strings.ToLower(text)) {
			return fmt.Errorf("%w, or nothing to switch it off", err)
		}
		return err
	}
	return v
}

// listenAddress parses an address to listen on, by default on the port usual. An empty host is well-formed; Validate
// checks whether it is safe.
func listenAddress(to *string, usual string) value {
	return value{arg: "HOST:PORT", read: func(text string) error {
		if err := checkAddress(text, 0, usual); err != nil {
			return err
		}
		*to = text
		return nil
	}}
}

// publicAddress parses an address to which others connect, so its port is not 0.
func publicAddress(to *string) value {
	return value{arg: "HOST:PORT", read: func(text string) error {
		if err := checkAddress(text, 1, "6380"); err != nil {
			return err
		}
		*to = text
		return nil
	}}
}

// nodes parses a list, which may be a YAML list in the settings file.
func nodes(to *Nodes) value {
	return value{arg: "HOST:PORT,...", shape: stringList, read: func(text string) error {
		all, err := ParseNodes(text)
		if err == nil {
			*to = all
		}
		return err
	}}
}

// sentinel parses the name of a master and the addresses of its Sentinels.
func sentinel(to *Sentinel) value {
	return value{arg: "master=NAME,HOST:PORT,...", shape: stringList, read: func(text string) error {
		if text == "" {
			*to = Sentinel{}
			return nil
		}
		name, addrs, _ := strings.Cut(text, ",")
		name, ok := strings.CutPrefix(name, "master=")
		if !ok || name == "" || addrs == "" {
			return errors.New("the name of the master and addresses of Sentinels belong here; write master=NAME,HOST:PORT,HOST:PORT")
		}
		all, err := parseNodes(addrs, sentinelPort)
		if err != nil {
			return err
		}
		*to = Sentinel{Master: name, Nodes: all}
		return nil
	}}
}

// twoPorts matches a host that is no part of an IPv6 address, with two ports.
var twoPorts = regexp.MustCompile(`^[^:]*[.g-z][^:]*:[0-9]+:[0-9]+$`)

// checkAddress checks that text is host:port, with a port of at least least. Errors have the port usual
// in their example.
func checkAddress(text string, least int, usual string) error {
	if host, number, found := strings.Cut(text, "/"); found && strings.Contains(host, ":") && isNumber(number) {
		return fmt.Errorf("%s has a number behind a slash; a database of Redis is named as redis://%s", Quote(text), plain(text))
	}
	if strings.Contains(text, "://") {
		return fmt.Errorf("%s is a URL; write host:port alone, for example 127.0.0.1:%s", Quote(text), usual)
	}
	if addr, _, found := strings.Cut(text, "/"); found && !strings.HasPrefix(text, "unix:") && checkAddress(addr, least, usual) == nil {
		return fmt.Errorf("%s has a path; write host:port alone: %s", Quote(text), plain(addr))
	}
	if strings.HasPrefix(text, "unix:") || strings.ContainsAny(text, `/\`) || strings.HasPrefix(text, "@") {
		return fmt.Errorf("%s looks like a unix socket, and unix sockets are not supported; write host:port, for example 127.0.0.1:%s", Quote(text), usual)
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		if twoPorts.MatchString(text) {
			return fmt.Errorf("%s has two ports; write host:port, for example 127.0.0.1:%s", Quote(text), usual)
		}
		if strings.Count(text, ":") > 1 && !strings.Contains(text, "[") {
			return fmt.Errorf("%s is not host:port; write an IPv6 address in brackets, for example [::1]:%s", Quote(text), usual)
		}
		if isPort(text, uint64(least)) {
			usual = text
		}
		return fmt.Errorf("%s is not host:port; write for example 127.0.0.1:%s", Quote(text), usual)
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("%s has a host with a space or control character in it; write for example 127.0.0.1:%s", Quote(text), usual)
	}
	if !isPort(port, uint64(least)) {
		return fmt.Errorf("%s is not host:port; the port must be a number from %d to %d", Quote(text), least, math.MaxUint16)
	}
	return nil
}
