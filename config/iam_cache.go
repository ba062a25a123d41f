package config

import (
	"errors"
	"regexp"
	"strings"
)

// IAMCache is a cache of AWS whose users log in with tokens of IAM: a replication group or a
// serverless cache of ElastiCache, or a cluster of MemoryDB.
type IAMCache struct {
	Name                 string // empty for none
	Serverless, MemoryDB bool
}

// cacheName is the form of the names of caches in AWS.
var cacheName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]*(-[a-zA-Z0-9]+)*$`)

// iamCache parses the name of a cache, with its kind in front unless it is a replication group.
func iamCache(to *IAMCache) value {
	return value{arg: "[serverless:|memorydb:]NAME", shape: stringOnly, read: func(text string) error {
		var c IAMCache
		if c.Name, c.Serverless = strings.CutPrefix(text, "serverless:"); !c.Serverless {
			c.Name, c.MemoryDB = strings.CutPrefix(text, "memorydb:")
		}
		if text != "" && !cacheName.MatchString(c.Name) {
			return errors.New("the name of a replication group, serverless:NAME or memorydb:NAME belongs here, and not a host")
		}
		*to = c
		return nil
	}}
}
