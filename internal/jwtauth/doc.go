// Package jwtauth checks JSON Web Tokens (RFC 7519) of clients that authenticate with them. A
// caller never waits.
package jwtauth
