// Package simulation holds simulations of what no test can set up for real: a
// fleet of 500 proxies in front of 40 shards while these fail, 10,000 clients
// that are denied at the same moment, and cells that are told late or never of each
// other. Breakers, leases, backstop, limiter, what says which cells there are and how
// they divide limits are the real ones; time, the network and the shards are made up.
// Whatever is drawn comes from a seed, so that a run can be repeated.
package simulation
