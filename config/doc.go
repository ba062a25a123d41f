// Package config turns flags, environment variables, a settings file and a limits file
// into settings and a compiled limit set. Only this package and cmd read files, flags or
// the environment; all other packages get plain values.
//
// Its guarantees:
//
// One table. Each setting is one row of the table in table.go. Its flag, its variable,
// its key in the settings file, its default, its line in --help and its line in
// --print-config all come from that row. A flag overrides a variable, a variable the
// file, the file the default.
//
// All mistakes at once. Load and ParseLimits list every mistake, each with its place and
// with what is allowed there.
//
// Safe by default. An address that other hosts can reach is rejected without unsafe_open,
// and no message or listing contains a secret.
//
// The last good limits stay. LimitsSource keeps its limits when a newer limits file
// cannot be used; Watcher reports that the file may have changed.
package config
