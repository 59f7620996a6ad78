// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Logs implements service.LogReader. ACI returns the last lines of a log, 4 MB at most, and has no log of an
// earlier run.
func (d *driver) Logs(ctx context.Context, of service.Target[instance], opts api.ContainerLogOpts) (io.ReadCloser, error) {
	if opts.Previous {
		return nil, errdefs.InvalidInput("ACI keeps no log of the run before")
	}
	tail := int32(0)
	if !opts.Follow { // otherwise the tail may be one unfinished line, and all later lines would be new
		tail = int32(min(opts.Tail, 1<<20))
	}
	return logs.Reread{
		Every: d.followEvery,
		Ended: func() bool { return d.kit.RunEnded(of) },
		Read: func(ctx context.Context, _ time.Time, ended bool) ([]logs.Line, error) {
			text, err := d.client.logs(ctx, value(of.Instance.group.Name), of.Container, tail)
			if end := strings.LastIndexByte(text, '\n') + 1; !ended { // the last line may grow
				text = text[:end]
			}
			return logs.Stamped(text), err
		},
	}.Open(ctx, opts, time.Now())
}
