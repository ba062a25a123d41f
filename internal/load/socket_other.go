//go:build !linux

package load

import (
	"errors"
	"time"
)

var errNoEpoll = errors.New("make load: it needs epoll, which only Linux has")

func openSocket(string) (fd int, err error) { return -1, errNoEpoll }
func closeSocket(int)                       {}
func readSocket(int, []byte) (int, error)   { return 0, errNoEpoll }
func writeSocket(int, []byte) (int, error)  { return 0, errNoEpoll }
func awaitInput(int, time.Duration) error   { return errNoEpoll }

type poller struct{}

func newPoller() (*poller, error) { return nil, errNoEpoll }

func (*poller) close()                               {}
func (*poller) watch(int, int, bool, bool) error     { return errNoEpoll }
func (*poller) wait(time.Duration) (int, error)      { return 0, errNoEpoll }
func (*poller) ready(int) (id int, read, write bool) { return 0, false, false }
