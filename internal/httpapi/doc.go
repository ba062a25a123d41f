// Package httpapi answers checks over HTTP, beside package commands and by the same handler: an
// operation of the API is one RL.* command with names for its arguments and results.
//
// Paths below /v1 take JSON. /check, and every path below it, is for gateways that ask with
// headers and need a status: 200 admits and 429 denies. A sick store is a decision there, as
// everywhere, and never a status of 5xx.
//
// The wire format is HTTP/1.1 (RFC 9112). The package reads nothing of a client beyond its
// bounds: headers of maxHeaderBytes, bodies of maxBodyBytes, and readTimeout for both.
package httpapi
