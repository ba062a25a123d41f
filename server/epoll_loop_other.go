//go:build !linux

package server

import (
	"errors"
	"net"
)

// eventLoop exists only on Linux: on other systems each connection has a goroutine.
type eventLoop struct{}

func newLoop(*listener) (*eventLoop, error) { return nil, errors.ErrUnsupported }

func (*eventLoop) run()                           {}
func (*eventLoop) adopt(*net.TCPConn, int64) bool { return false }
func (*eventLoop) drain()                         {}
func (*eventLoop) killAll() int                   { return 0 }
