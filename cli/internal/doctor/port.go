// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"
)

// checkPort opens the port of the kubelet API, and keeps it for checkReachable.
func checkPort(ctx context.Context, e *exam) {
	switch {
	case !e.Serve:
		e.skip("the kubelet API is not served")
		return
	case e.Port < 0 || e.Port > 65535:
		e.skip("it is no port")
		return
	}
	address := net.JoinHostPort(e.ListenAddress, strconv.Itoa(e.Port))
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	var dns *net.DNSError
	switch {
	case err == nil:
		e.port = l
	case errors.Is(err, syscall.EADDRINUSE) && e.here:
		e.skip("the node itself serves there")
	case errors.Is(err, syscall.EADDRINUSE):
		e.found("find out who listens there (ss -ltnp 'sport = :"+strconv.Itoa(e.Port)+"'), stop it, or choose another --port; a kubelet has 10250 too",
			"the port of %s is in use by another program", address)
	case errors.Is(err, syscall.EACCES):
		e.found("choose a --port of 1024 or more", "%v", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &dns):
		e.found("set --listen-address to an address of this machine, or leave it empty for all", "%s is no address of this machine: %v", e.ListenAddress, err)
	default:
		e.found("correct --listen-address and --port", "%v", err)
	}
}
