// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net"
	"testing"
	"testing/synctest"
)

// halfPipe is a connection in memory with CloseWrite, as a TCP connection has.
type halfPipe struct{ net.Conn }

func (halfPipe) CloseWrite() error { return nil }

// anyFrame passes every frame.
type anyFrame struct{}

func (anyFrame) pass(piece []byte) ([]byte, error) { return piece, nil }

func (anyFrame) sent([]byte) {}

// TestSecurityE5ClosedConnectionHoldsNoMemory: a session gives back its share of the common memory at its end,
// even if the client keeps its side of the connection open.
func TestSecurityE5ClosedConnectionHoldsNoMemory(t *testing.T) {
	for name, end := range map[string]func(*watchedConn){"closed": (*watchedConn).close, "aborted": (*watchedConn).abort} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer far.Close()
				c := watchConn(halfPipe{near}, near, func(error) {}, anyFrame{}, &streamRecord{})
				held := func() (blocks, shared int) {
					synctest.Wait()
					c.mu.Lock()
					defer c.mu.Unlock()
					return len(c.ahead.blocks), c.ahead.shared
				}
				if _, err := far.Write(make([]byte, 64<<10)); err != nil {
					t.Fatal(err)
				}
				if blocks, shared := held(); blocks != 16 || shared == 0 {
					t.Fatalf("the connection holds %d blocks, %d bytes of the shared memory; want 64 KiB held", blocks, shared)
				}
				end(c)
				if blocks, shared := held(); blocks != 0 || shared != 0 {
					t.Errorf("after its end the connection holds %d blocks, %d bytes of the shared memory", blocks, shared)
				}
				_, _ = far.Write(make([]byte, 64<<10)) // an error means that the other side does not read
				if blocks, shared := held(); blocks != 0 || shared != 0 {
					t.Errorf("of what came after its end the connection holds %d blocks, %d bytes of the shared memory", blocks, shared)
				}
				far.Close()
				<-c.done
			})
		})
	}
}
