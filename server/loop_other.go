//go:build !linux

package server

import (
	"errors"
	"net"
)

// loop is only there on Linux: elsewhere each connection has a goroutine.
type loop struct{}

func newLoop(*Server) (*loop, error) { return nil, errors.ErrUnsupported }

func (*loop) run()                                      {}
func (*loop) adopt(*listener, *net.TCPConn, int64) bool { return false }
func (*loop) drain()                                    {}
func (*loop) killAll() int                              { return 0 }
