// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	gvisorlog "gvisor.dev/gvisor/pkg/log"
)

// passed is the file descriptor that both commands inherit from their parent.
const passed = 3

// Main runs a command of `runsc podnet`, and returns its exit code:
//
//	serve                  the network process. Descriptor 3 is a listening unix socket of type SOCK_SEQPACKET.
//	join CONTROL_SOCKET    gives a sandbox its network. Descriptor 3 is the sandbox's end of the link, stdin has a JoinConfig.
func Main(args []string) int {
	err := errors.New("usage: runsc podnet serve | runsc podnet join CONTROL_SOCKET")
	switch {
	case len(args) == 1 && args[0] == "serve":
		err = serveNetwork(log.New(os.Stderr, "podnet: ", 0))
	case len(args) == 2 && args[0] == "join":
		err = joinSandbox(args[1], os.NewFile(passed, "card"), os.Stdin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "podnet:", err)
		return 1
	}
	return 0
}

// memoryLimit is the soft memory limit of Go's runtime. An idle process uses a tenth of it.
const memoryLimit = 384 << 20

// serveNetwork runs the network process. It ends on SIGTERM, and when it has no pods and no clients.
func serveNetwork(logger *log.Logger) error {
	file := os.NewFile(passed, "listener")
	listener, err := net.FileListener(file)
	_ = file.Close()
	if err != nil {
		return fmt.Errorf("descriptor 3 is not a socket that listens: %w", err)
	}
	l, ok := listener.(*net.UnixListener)
	if !ok || l.Addr().Network() != "unixpacket" {
		return fmt.Errorf("descriptor 3 is a socket of %s, not a unix socket of type SOCK_SEQPACKET", listener.Addr().Network())
	}
	l.SetUnlinkOnClose(false)                                     // the path, if any, belongs to the creator of the socket
	signal.Ignore(syscall.SIGPIPE)                                // the end of the log's reader must not end the network
	gvisorlog.Log().Emitter = &gvisorlog.Writer{Next: io.Discard} // pods must not fill the log; some packages keep the logger
	debug.SetMemoryLimit(memoryLimit)                             // allowances limit the live memory
	debug.SetGCPercent(50)                                        // most allocations are short-lived
	if processors := runtime.GOMAXPROCS(0) / 2; processors > 0 {
		// Each packet also wakes the other end: more processors here would compete with the sandbox for CPU.
		runtime.GOMAXPROCS(processors)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	user := uint32(os.Geteuid())
	files, err := raiseFiles()
	if err != nil {
		return err
	}
	n, err := newNetwork(files, logger)
	if err != nil {
		return err
	}
	if err := restrictProcess(); err != nil {
		return err
	}
	logger.Printf("started with %d file descriptors", files)
	s := &server{network: n, users: []uint32{0, user}, idle: idleTime}
	if err := s.serveListener(ctx, l); err != nil {
		return err
	}
	if ctx.Err() == nil {
		logger.Printf("ended: no pod and no daemon for %v", idleTime)
		return nil
	}
	logger.Print("ended by a signal")
	return nil
}
