package commands

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// tenantRequired is the error for a - of a user that is not bound to one tenant.
const tenantRequired = "ERR tenant required: name one, as - works only for a user of one tenant"

const costErrReply = "ERR cost must be an integer between 1 and 2147483647"

// costAdvice returns the command that fits a cost of 0, or below, in RL.CHECK, behind "; ", or "".
func (o option) costAdvice(cost []byte) string {
	if o != checkOptions {
		return ""
	}
	if string(cost) == "0" {
		return "; RL.PEEK takes nothing"
	}
	if n, err := strconv.ParseInt(string(cost), 10, 64); err == nil && n < 0 {
		return "; RL.REFUND returns units"
	}
	return ""
}

var (
	errReservedDim = errors.New("tenant, op and ip stand in front, without DIM")
	errEqualsSign  = errors.New("a blank stands between name and value")
)

// invalid returns the error for an argument that is not what it has to be.
func invalid(what string, arg []byte, reason error) string {
	return "ERR invalid " + what + " '" + quote(arg) + "': " + reason.Error()
}

// opMissing begins the advice about an ip that stands behind the tenant.
const opMissing = "the op, or - for none, is missing in front of the ip "

// noneText is the advice about an argument that is none.
const noneText = ", - stands for none"

// orNone adds advice to the error for an empty argument that a request may lack.
func orNone(arg []byte) string {
	if len(arg) == 0 {
		return noneText
	}
	return ""
}

// orQuoted adds advice to the error for an ip that is the path of an op, whose space was not quoted, or
// that is the op, or that is no try at an address.
func orQuoted(tenant, op, ip []byte) string {
	if text := unnamed(ip); text != "" {
		return "; " + text
	}
	_, isNumber := parseCost(ip)
	if _, err := limit.ParseAddr(string(op)); err == nil && isNumber {
		return "; " + opMissing + string(op)
	}
	for _, arg := range [][]byte{tenant, op} {
		if _, err := limit.ParseAddr(string(arg)); err == nil {
			return "; the order is tenant op ip"
		}
	}
	if !bytes.HasPrefix(ip, []byte("/")) || !limit.IsMethod(string(op)) {
		switch {
		case len(ip) == 0:
			return noneText
		case isNumber:
			return noneText + "; the order is tenant op ip cost"
		case !bytes.ContainsAny(ip, ".:,"):
			return noneText + "; the order is tenant op ip"
		}
		return ""
	}
	return `; quote an op that has a space: "` + string(op) + " " + quote(ip) + `"`
}

// invalid returns the error for the first of the words, which is none of the options that a command takes.
// Dims reports that dimensions stand before it.
func (o option) invalid(words [][]byte, dims bool) (errReply string) {
	word := words[0]
	name, _, _ := splitOption(word)
	if shown, text := o.joined(words); text != "" {
		return "ERR invalid option '" + shown + "': " + text
	}
	if equalFold(name, "BYPASS") {
		word = name // without the token
	}
	errReply = "ERR invalid option '" + quote(word) + "': "
	if o&optionTTL == 0 && equalFold(word, "COST") { // RL.RESERVE has an estimate, and RL.ACQUIRE no cost
		return errReply + "the cost stands behind the ip, without a name"
	}
	if o&optionTTL != 0 && len(words) > 1 {
		switch _, isNumber := parseCost(words[1]); { // as SET of Redis has them
		case isNumber && equalFold(word, "PX"):
			return errReply + "TTL is in milliseconds; did you mean TTL " + quote(words[1]) + "?"
		case isNumber && equalFold(word, "EX"):
			return errReply + "TTL is in milliseconds; did you mean TTL " + quote(words[1]) + "000?"
		}
	}
	if o&optionTTL == 0 && equalFold(name, "TTL") {
		return errReply + "RL.RESERVE and RL.ACQUIRE take it, for what they hold"
	}
	isCost := equalFold(name, "COST") || equalFold(name, "ESTIMATE")
	isNumber := len(word) > 0 && looksNumeric(word) && !isOption(name)
	if o&optionTTL != 0 && (isNumber || isCost) {
		return errReply + "RL.ACQUIRE has no cost, as it takes one slot, and the estimate of RL.RESERVE stands once, behind the ip and without a name"
	}
	if isNumber {
		return errReply + "the cost stands once, behind the ip and in front of the options"
	}
	if text := unnamed(word); text != "" {
		return errReply + text
	}
	if advice := orBlank([][]byte{word}); advice != "" && !isOption(name) {
		return errReply + "a dimension has DIM in front" + advice
	}
	if dims {
		return errReply + "DIM stands before every name and value"
	}
	errReply += "the options here are DIM name value"
	names := []string{"DIM"}
	for i, name := range optionNames {
		if o&(1<<i) != 0 {
			errReply += ", " + name
			first, _, _ := strings.Cut(name, " ")
			names = append(names, first)
		}
	}
	meant := near(quote(word), names)
	if meant == "" && len(words) == 2 && !isOption(name) && !equalFold(word, "COST") && !limit.ReservedDim(string(word)) {
		meant = "; did you mean DIM " + quote(word) + " " + quote(words[1]) + "?"
	}
	return errReply + meant
}

// unnamed returns where an argument of the form name=value stands that has no name, or "".
func unnamed(arg []byte) string {
	name, value, found := bytes.Cut(arg, []byte("="))
	switch {
	case !found:
		return ""
	case equalFold(name, "COST"), equalFold(name, "ESTIMATE"):
		return strings.TrimSuffix("the cost stands behind the ip, without a name: "+quote(value), ": ")
	case limit.ReservedDim(string(name)):
		return "tenant, op and ip stand in front, in this order and without names"
	}
	return ""
}

// orBlank returns advice for the words after a DIM that begin with name=value, otherwise "".
func orBlank(words [][]byte) string {
	if len(words) == 0 {
		return ""
	}
	name, value, found := bytes.Cut(words[0], []byte("="))
	if !found || limit.ReservedDim(string(name)) {
		return ""
	}
	return ": DIM " + quote(name) + " " + quote(value)
}
