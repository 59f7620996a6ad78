// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// Logs implements service.LogReader. The plugin selects the lines.
func (d *driver) Logs(ctx context.Context, of service.Target[instance], o api.ContainerLogOpts) (io.ReadCloser, error) {
	log, err := d.client.logs(ctx, wire.Logs{
		Namespace: of.Pod.Namespace, PodUID: string(of.Pod.UID), PodName: of.Pod.Name, Container: of.Container, Options: logOptions(o),
	})
	if absent(err) { // a missing log is an error of the kind not-found
		err = errdefs.AsNotFound(err)
	}
	if err == nil && o.LimitBytes > 0 {
		log = limited{io.LimitReader(log, int64(o.LimitBytes)), log}
	}
	return log, err
}

// limited cuts a log to its byte limit on this side. The API server refuses a limit together with a tail, and
// not every plugin supports a limit.
type limited struct {
	io.Reader
	io.Closer
}

// logOptions converts log options to those of the protocol. The API server refuses two combinations of options.
func logOptions(o api.ContainerLogOpts) wire.LogOptions {
	out := wire.LogOptions(o)
	if out.Tail != 0 {
		out.LimitBytes = 0
	}
	if !out.SinceTime.IsZero() {
		out.SinceSeconds = 0
	}
	return out
}
