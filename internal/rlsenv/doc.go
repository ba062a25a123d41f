// Package rlsenv reads the environment variables of envoyproxy/ratelimit, so that its deployment
// runs Limitgate by a change of the image alone. It takes each variable, reports why Limitgate does
// not need it, or refuses it; see Table.
package rlsenv
