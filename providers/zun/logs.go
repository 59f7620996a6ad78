// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/openstack"
)

// logEvery is the interval of requests for a followed log.
const logEvery = 2 * time.Second

// Logs implements service.LogReader. Zun has one log of all runs of a container. The times of the starts
// separate the runs.
func (d *driver) Logs(ctx context.Context, of service.Target[instance], opts api.ContainerLogOpts) (io.ReadCloser, error) {
	if err := of.Instance.noSession("log"); err != nil {
		return nil, err
	}
	var from, to time.Time
	if of.State != nil && of.State.RestartCount > 0 {
		starts, err := d.client.listStarts(ctx, of.Instance.UUID)
		if err != nil {
			return nil, err
		}
		n := len(starts)
		if opts.Previous && n > 0 {
			to = parseTime(starts[n-1].StartTime)
			n--
		}
		if n > 0 {
			from = parseTime(starts[n-1].StartTime)
		}
	}
	return d.kit.RereadLog(ctx, of, opts, logEvery, func(ctx context.Context, since time.Time) ([]logs.Line, error) {
		query := url.Values{"timestamps": {"true"}}
		if since.Before(from) {
			since = from
		}
		if !since.IsZero() { // 0 is an error at Zun
			query.Set("since", strconv.FormatInt(since.Unix(), 10))
		}
		var text string
		_, err := d.client.call(ctx, "read the log", http.MethodGet, containers+"/"+of.Instance.UUID+"/logs", query, nil, &text)
		if openstack.StatusOf(err) == http.StatusConflict { // in some states, the container has no log
			err = errdefs.RetryAfter(err, logEvery)
		}
		var run []logs.Line
		for _, l := range logs.Stamped(text) {
			if !l.At.Before(from) && (to.IsZero() || l.At.Before(to)) {
				run = append(run, l)
			}
		}
		return run, err
	})
}
