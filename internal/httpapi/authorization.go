package httpapi

import (
	"encoding/base64"
	"strings"

	"github.com/limitgate/limitgate/internal/users"
)

// The headers with the credentials of a client of Limitgate. Gateways pass on Authorization of
// their own clients, so at /check another name has those of the gateway.
const (
	apiCredentials     = "Authorization"
	gatewayCredentials = "X-Limitgate-Authorization"
)

// credentials returns the name and the password of an Authorization header: Basic of RFC 7617, or
// Bearer of RFC 6750, whose token is the password of a user that stands for all with tokens. Of an
// empty header both are empty. Ok is false for anything else.
func credentials(header string) (name, password string, ok bool) {
	if header == "" {
		return "", "", true
	}
	scheme, rest, _ := strings.Cut(header, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return users.TokenName, rest, rest != ""
	case strings.EqualFold(scheme, "Basic"):
		decoded, err := base64.StdEncoding.DecodeString(rest)
		if err != nil {
			return "", "", false
		}
		name, password, ok = strings.Cut(string(decoded), ":")
		return name, password, ok
	}
	return "", "", false
}
