// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/podnet"
)

// TestOnlyABrokenNetworkProcessIsReplaced checks that an error of the daemon itself does not replace the network
// process, because the replacement costs pods their connections.
func TestOnlyABrokenNetworkProcessIsReplaced(t *testing.T) {
	for cause, broken := range map[error]bool{
		syscall.ENOENT: true, syscall.ECONNREFUSED: true, syscall.ECONNRESET: true, syscall.EPIPE: true, io.EOF: true, io.ErrUnexpectedEOF: true,
		os.ErrDeadlineExceeded: true, podnet.ErrVersion: true,
		syscall.EMFILE: false, syscall.ENFILE: false, syscall.ENOMEM: false, syscall.ENOBUFS: false, syscall.EAGAIN: false, fs.ErrPermission: false, context.Canceled: false,
	} {
		err := fmt.Errorf("connect with the network process: %w", &net.OpError{Op: "dial", Net: "unixpacket", Err: cause})
		if isBroken(err) != broken {
			t.Errorf("%v: replaced %t, want %t", cause, !broken, broken)
		}
	}
}

func TestCallerThatGivesUpEndsNoNetworkProcess(t *testing.T) {
	ctx, cancel := context.WithDeadline(neverDone{t.Context()}, time.Now().Add(-time.Second))
	defer cancel()
	if !gaveUp(neverDone{ctx}) {
		t.Error("a deadline that has passed is none")
	}
	if gaveUp(t.Context()) {
		t.Error("a caller that waits has given up")
	}
}

// neverDone is a context whose Err is still nil after its deadline.
type neverDone struct{ context.Context }

func (neverDone) Err() error { return nil }
