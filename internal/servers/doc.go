// Package servers starts real servers as child processes: one redis-server, a whole
// cluster of them, a limitgate, emulators of AWS. They listen on the loopback interface,
// on free ports, and end with this process, however it ends.
//
// Tests use it through packages redistest and awstest, the benchmark directly.
//
// The binaries of Redis come from the folder in LIMITGATE_REDIS_BIN, or from
// PATH.
package servers
