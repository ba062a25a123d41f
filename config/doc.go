// Package config turns flags, environment variables, a settings file and a
// limits file into settings and a compiled limit set. Only this package and cmd
// read files, flags or the environment; everything below gets plain values.
//
// What it promises:
//
// One table. Each setting is one row of the table in table.go. Its flag, its
// variable, its key in the settings file, its default, its line in --help and
// its line in --print-config all come from that row. A flag wins over a
// variable, a variable over the file, the file over the default.
//
// All mistakes at once. Load and ParseLimits list everything that is wrong, each
// with where it stands, and with what would be right.
//
// Safe unless told otherwise. An address that others can reach is refused
// without unsafe_open, and no message or listing holds the content of a secret.
//
// The last good limits stay. LimitsSource keeps what it has when a newer limits
// file cannot be used; Watcher says when there may be one.
package config
