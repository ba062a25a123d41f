//go:build !linux

package server

import (
	"errors"
	"net"
)

// eventLoop exists only on Linux: on other systems each connection has a goroutine.
type eventLoop struct{}

func newLoop() (*eventLoop, error) { return nil, errors.ErrUnsupported }

func (*eventLoop) run()                                      {}
func (*eventLoop) stop()                                     {}
func (*eventLoop) end()                                      {}
func (*eventLoop) adopt(*listener, *net.TCPConn, int64) bool { return false }
func (*eventLoop) drain(*listener)                           {}
func (*eventLoop) killAll(*listener) int                     { return 0 }

func (*eventLoop) newSocket(*net.TCPConn) (*Socket, error) { return nil, errors.ErrUnsupported }

// Socket is a connection to another server whose input an event loop reads. It exists only on
// Linux.
type Socket struct{}

// Watch does nothing.
func (*Socket) Watch(func() error, func(error)) {}

// Read reads nothing.
func (*Socket) Read([]byte) (int, error) { return 0, net.ErrClosed }

// Write writes nothing.
func (*Socket) Write([]byte) (int, error) { return 0, net.ErrClosed }

// HangUp does nothing.
func (*Socket) HangUp() {}
