package httpapi

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are pipes: what one end writes waits until the other reads.
type pipes struct{ ends []net.Conn }

func (p *pipes) Accept() (net.Conn, error) {
	server, client := net.Pipe()
	p.ends = append(p.ends, client)
	return server, nil
}

func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return nil }

// TestEvict: at the bound the place of a connection goes to a new one: that whose answer is unread for longest, if that is a while,
// or else the one that is idle for longest, and of those whose answers are just unread the first only if there is none.
func TestEvict(t *testing.T) {
	for name, row := range map[string]struct {
		does   string // i is idle, w writes, and d decides; one is accepted each 400 ms
		victim int    // or -1 for none
	}{
		"idle":             {"diid", 1},
		"idle and unread":  {"diwiii", 2},
		"just unread":      {"diw", 1},
		"just unread ones": {"dww", 1},
		"all decide":       {"ddd", -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				of := &pipes{}
				l := &conns{Listener: of, most: len(row.does), open: map[*conn]struct{}{}}
				ended := make([]bool, len(row.does))
				all := make([]net.Conn, 0, len(row.does)+1)
				for i, does := range row.does {
					c, _ := l.Accept()
					all = append(all, c)
					go func() {
						switch does {
						case 'i':
							_, _ = c.Read(make([]byte, 1))
						case 'w':
							c.(*conn).waits.Store(0)
							_, _ = c.Write([]byte("x"))
						default:
							c.(*conn).waits.Store(0)
							return
						}
						ended[i] = true
					}()
					time.Sleep(400 * time.Millisecond)
				}
				synctest.Wait()
				c, _ := l.Accept()
				synctest.Wait()
				for i := range ended {
					if ended[i] != (i == row.victim) {
						t.Errorf("connection %d ended: %t", i, ended[i])
					}
				}
				for _, c := range append(all, c) {
					_ = c.Close()
				}
			})
		})
	}
}
