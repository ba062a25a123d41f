// Package tlsfiles makes TLS configurations from PEM files, and reads the files again when they
// have changed. While changed files cannot be used, for example because a certificate was
// replaced before its key, the configuration of the earlier ones stays in force.
package tlsfiles
