// Package bypass checks tokens that let a request pass the limits: for load tests, migrations and
// emergencies. A token is a JSON Web Token (RFC 7519) with an end, and a rate of its own, beyond
// which it counts for nothing. Each use is counted and logged. A caller never waits, and the
// memory is bounded.
package bypass
