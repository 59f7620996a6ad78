// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"io"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

const (
	// mostLines is the maximum number of lines in an answer: the newest lines. The limit is also 1 MiB.
	mostLines = 2000
	// logEvery is the interval of requests for a log that is followed. An account has 500 requests a minute, and
	// each follower makes 30 of them.
	logEvery = 2 * time.Second
)

// Logs implements service.LogReader: the newest lines of the log, and with Follow also new lines.
func (d *driver) Logs(ctx context.Context, of service.Target[instance], opts api.ContainerLogOpts) (io.ReadCloser, error) {
	ask := logRequest{ContainerGroupID: of.Instance.status.ContainerGroupID, ContainerName: of.Container, Tail: mostLines, Timestamps: true, LastTime: opts.Previous}
	if opts.Tail > 0 {
		ask.Tail = min(int64(opts.Tail), mostLines)
	}
	return logs.Reread{
		Every: logEvery,
		Ended: func() bool { return opts.Previous || d.kit.RunEnded(of) },
		Read: func(ctx context.Context, since time.Time, _ bool) ([]logs.Line, error) {
			if !since.IsZero() {
				ask.StartTime = since.UTC().Truncate(time.Second).Format(time.RFC3339)
			}
			var answer logAnswer
			err := d.client.call(ctx, "DescribeContainerLog", ask, &answer)
			ask.Tail = mostLines // later reads ask for as many lines as possible
			return logs.Stamped(answer.Content), err
		},
	}.Open(ctx, opts, d.client.now())
}
