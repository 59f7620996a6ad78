// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// leavable is a connection in memory that records the end of its output.
type leavable struct {
	net.Conn
	left chan struct{}
}

func (l leavable) CloseWrite() error {
	close(l.left)
	return nil
}

// TestCommandThatDoesNotEndIsGivenUp checks that the session of a disconnected caller waits for the end of its
// command, but not forever.
func TestCommandThatDoesNotEndIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		left := make(chan struct{})
		c := &conn{Conn: leavable{near, left}, frames: frames{w: near}, r: bufio.NewReader(near)}
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := c.copyStreams(ctx, request{Op: opExec, Kill: true}, Streams{Stdout: io.Discard, Stderr: io.Discard})
			ended <- err
		}()
		synctest.Wait()
		begin := time.Now()
		leave()
		<-left
		err := <-ended
		if waited := time.Since(begin); waited != leaveLimit || !errors.Is(err, context.Canceled) {
			t.Errorf("it is given up after %v with %v, want %v", waited, err, leaveLimit)
		}
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection is still there: %v", err)
		}
	})
}
