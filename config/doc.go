// Package config turns flags, the environment, a settings file and a limits
// file into settings and a compiled limit set. Only this package and cmd read
// files, flags or the environment.
//
// It promises that every mistake is listed at once, each with the place where
// it was made and what would be right, and that a limits file that cannot be
// used changes nothing: the last good limits stay.
package config
