package proxy

import (
	"fmt"
	"net"

	"github.com/limitgate/limitgate/config"
)

// listen opens both listeners before anything else starts, so that a port in use ends the
// program with a clear error.
func listen(s *config.Settings) (front, admin net.Listener, err error) {
	if front, err = net.Listen("tcp", s.Listen); err != nil {
		return nil, nil, fmt.Errorf("listen for clients: %w", err)
	}
	if s.Admin == "" {
		return front, nil, nil
	}
	if admin, err = net.Listen("tcp", s.Admin); err != nil {
		_ = front.Close()
		return nil, nil, fmt.Errorf("listen for admin: %w", err)
	}
	return front, admin, nil
}
