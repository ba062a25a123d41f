package httpapi

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/limitgate/limitgate/limit"
)

// Gateway is a program that asks at /check, which decides from where the method and the path of
// its client's request are taken. A client can choose any header that its gateway does not set.
type Gateway uint8

// The gateways.
const (
	// GatewayAuto takes the headers that are there, the first of those below, or else the
	// request itself. Clients can choose headers that their gateway passes on.
	GatewayAuto Gateway = iota
	// GatewayNginx sets X-Original-Method, and X-Original-URI or X-Original-URL, as its
	// configuration says.
	GatewayNginx
	// GatewayCaddy sets X-Forwarded-Method and X-Forwarded-Uri.
	GatewayCaddy
	// GatewayTraefik sets the same.
	GatewayTraefik
	// GatewayEnvoy sends the method of its client, and its path and query behind /check.
	GatewayEnvoy
	// GatewayHAProxy sets X-Original-Method and X-Original-URI, as its script says.
	GatewayHAProxy
	// GatewayKong sets X-Forwarded-Method and X-Forwarded-Uri, as APISIX does.
	GatewayKong
	// GatewayAPISIX sets the same.
	GatewayAPISIX
)

var gatewayNames = []string{"auto", "nginx", "caddy", "traefik", "envoy", "haproxy", "kong", "apisix"}

// GatewayNames returns the names of all gateways.
func GatewayNames() []string { return slices.Clone(gatewayNames) }

// ParseGateway returns the gateway of a name.
func ParseGateway(name string) (Gateway, bool) {
	n := slices.Index(gatewayNames, name)
	return Gateway(max(n, 0)), n >= 0
}

// String returns the name of the gateway.
func (g Gateway) String() string { return gatewayNames[g] }

var (
	originalMethod  = []string{"X-Original-Method"}
	originalURI     = []string{"X-Original-URI", "X-Original-URL"}
	forwardedMethod = []string{"X-Forwarded-Method"}
	forwardedURI    = []string{"X-Forwarded-Uri"}
)

// headers returns the headers with the method and with the path, the first one that is there
// counts. Without them the request itself has both.
func (g Gateway) headers() (method, uri []string) {
	switch g {
	case GatewayNginx, GatewayHAProxy:
		return originalMethod, originalURI
	case GatewayCaddy, GatewayTraefik, GatewayKong, GatewayAPISIX:
		return forwardedMethod, forwardedURI
	case GatewayAuto:
		return slices.Concat(originalMethod, forwardedMethod), slices.Concat(originalURI, forwardedURI)
	default:
		return nil, nil
	}
}

// last returns the last value of the first of some headers that is there: a gateway that does not
// replace the header of its client adds its own behind it.
func last(h *fasthttp.RequestHeader, names ...string) []byte {
	for _, name := range names {
		if all := h.PeekAll(name); len(all) > 0 && len(all[len(all)-1]) > 0 {
			return all[len(all)-1]
		}
	}
	return nil
}

// single returns the value of a header that is there once. Of several, a service may read another
// one than we do, so they count as none.
func single(h *fasthttp.RequestHeader, name string) []byte {
	if all := h.PeekAll(name); len(all) == 1 {
		return all[0]
	}
	return nil
}

// op returns the operation of the request that a gateway asks about: its method and its path
// without the query. Below is the path behind /check, or nil. Named is false if the gateway sent
// no path.
func (s *Server) op(ctx *fasthttp.RequestCtx, below []byte) (op []byte, named bool) {
	h := &ctx.Request.Header
	methods, uris := s.opts.Gateway.headers()
	method, uri := last(h, methods...), last(h, uris...)
	if s.opts.Gateway == GatewayAuto && uri != nil {
		s.warnings.auto()
	}
	if uri == nil && (s.opts.Gateway == GatewayAuto || s.opts.Gateway == GatewayEnvoy) {
		uri = below
	}
	if method == nil {
		method = h.Method()
	}
	if uri == nil {
		return nil, false
	}
	return appendOp(make([]byte, 0, len(method)+1+len(uri)), method, pathOf(uri)), true
}

// pathOf returns the path of a URI, which may begin with a scheme and a host, without its query.
func pathOf(uri []byte) []byte {
	if i := bytes.IndexAny(uri, "?#"); i >= 0 {
		uri = uri[:i]
	}
	if bytes.HasPrefix(uri, []byte("/")) {
		return uri
	}
	_, rest, found := bytes.Cut(uri, []byte(":"))
	if !found {
		return uri
	}
	authority, hasAuthority := bytes.CutPrefix(rest, []byte("//"))
	if !hasAuthority {
		return rest
	}
	if slash := bytes.IndexByte(authority, '/'); slash >= 0 {
		return authority[slash:]
	}
	return []byte("/")
}

// appendOp appends METHOD PATH. The path is decoded once; // and . stay. What is no text for an op,
// a control character or a byte outside of UTF-8, is encoded, and the end of a long path is cut off:
// such requests are decided too.
func appendOp(op, method, path []byte) []byte {
	for _, c := range method {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		op = append(op, c)
	}
	op = append(op, ' ')
	begin := len(op)
	if op = appendDecoded(op, path); !isPlain(op[begin:]) {
		op = appendEncoded(op[:begin], bytes.Clone(op[begin:]))
	}
	return cutText(op)
}

// isPlain reports whether a text has printable ASCII only, as most paths do.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// appendEncoded appends a text, with %XX in place of each byte of what an op cannot have.
func appendEncoded(to, text []byte) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) {
			for _, c := range text[:size] {
				to = append(to, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
			}
		} else {
			to = append(to, text[:size]...)
		}
		text = text[size:]
	}
	return to
}

// cutText cuts the end of a text that is too long for an op, between two characters.
func cutText(op []byte) []byte { return cutTo(op, limit.MaxOpBytes) }

// cutTo cuts the end of a text that has more than most bytes, between two characters.
func cutTo(text []byte, most int) []byte {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// appendDecoded appends a path with its %XX replaced by bytes. A % without two digits stays.
func appendDecoded(to, path []byte) []byte {
	for i := 0; i < len(path); i++ {
		if path[i] == '%' && i+2 < len(path) {
			if hi, lo := digit(path[i+1]), digit(path[i+2]); hi >= 0 && lo >= 0 {
				to = append(to, byte(hi<<4|lo))
				i += 2
				continue
			}
		}
		to = append(to, path[i])
	}
	return to
}

// digit returns the value of a hexadecimal digit, or -1.
func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
