// Package rlsxds receives the limits of a rate limit service from an xDS server, as Envoy Gateway serves
// them: by ADS, state of the world, in resources of the type RateLimitConfig, one for each domain. It
// passes on their bytes, whose meaning it does not know.
//
// The last limits that could be applied stay in use while the server is away or sends others that cannot.
package rlsxds
