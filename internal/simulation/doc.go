// Package simulation holds simulations of situations that no test can set up for real: a
// fleet of 500 proxies in front of 40 shards while these fail, 10,000 clients that are
// denied at the same time, and cells that receive changes late or never. Breakers,
// leases, backstop, limiter, the control plane of cells and their division of limits are
// the real ones; time, the network and the shards are simulated. All randomness comes
// from a seed, so that a run can be repeated.
package simulation
