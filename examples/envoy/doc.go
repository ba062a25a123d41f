// Package envoy holds the tests of the configurations of Envoy, Istio and Envoy Gateway beside it:
// they are decoded as Envoy decodes them, and their descriptors meet the limits in ratelimit/config.
//
// It has no code to import.
package envoy
