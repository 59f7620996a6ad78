// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSwept keeps the process alive until the pods of the contract are removed. A closed terminal interrupts the run as Ctrl-C does. If
// the reader of the output ends, such as tee, writes return an error. The returned function restores the default behavior.
func untilSwept(ctx context.Context) (context.Context, func()) {
	// The channel is never read. Unlike with signal.Ignore, processes that a provider starts still get the
	// signal as usual.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	stop := func() {}
	if !signal.Ignored(syscall.SIGHUP) { // not under nohup
		// The signal stays caught after the first time: the kernel and the shell may both send it.
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
	}
	return ctx, func() {
		stop()
		signal.Stop(pipe)
	}
}
