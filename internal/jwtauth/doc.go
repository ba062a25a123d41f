// Package jwtauth checks JSON Web Tokens (RFC 7519) against the public keys of a JWKS (RFC
// 7517), which it reads from a file or a URL, again and again. A caller never waits for a
// read, and keys that cannot be read leave the earlier ones in force.
package jwtauth
