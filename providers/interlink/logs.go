// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"
	"fmt"
	"io"

	dto "github.com/prometheus/client_model/go"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// GetContainerLogs implements nodeutil.Provider. The plugin selects the lines.
func (p *provider) GetContainerLogs(ctx context.Context, namespace, name, container string, o api.ContainerLogOpts) (io.ReadCloser, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	log, err := p.client.logs(ctx, wire.Logs{
		Namespace: namespace, PodUID: string(pod.UID), PodName: name, Container: container, Options: logOptions(o),
	})
	if absent(err) { // a log that is not there costs nothing
		err = errdefs.AsNotFound(err)
	}
	if err != nil {
		return nil, fmt.Errorf("log of container %s of pod %s/%s: %w", container, namespace, name, err)
	}
	if o.LimitBytes > 0 {
		return limited{io.LimitReader(log, int64(o.LimitBytes)), log}, nil
	}
	return log, nil
}

// limited is a log that is cut here: the API server refuses a limit beside a tail, and not every plugin knows it.
type limited struct {
	io.Reader
	io.Closer
}

// logOptions are those of the protocol. The API server refuses two pairs of them.
func logOptions(o api.ContainerLogOpts) wire.LogOptions {
	out := wire.LogOptions{
		Tail: o.Tail, LimitBytes: o.LimitBytes, Timestamps: o.Timestamps, Follow: o.Follow, Previous: o.Previous,
		SinceSeconds: o.SinceSeconds, SinceTime: o.SinceTime,
	}
	if out.Tail != 0 {
		out.LimitBytes = 0
	}
	if !out.SinceTime.IsZero() {
		out.SinceSeconds = 0
	}
	return out
}

// RunInContainer fails: the protocol has no such request.
func (p *provider) RunInContainer(ctx context.Context, namespace, name, _ string, _ []string, _ api.AttachIO) error {
	return p.lacks(ctx, namespace, name, "exec: read what the job writes with kubectl logs")
}

// AttachToContainer fails: the protocol has no such request.
func (p *provider) AttachToContainer(ctx context.Context, namespace, name, _ string, _ api.AttachIO) error {
	return p.lacks(ctx, namespace, name, "attach: follow its output with kubectl logs -f")
}

// PortForward fails: the protocol has no such request.
func (p *provider) PortForward(ctx context.Context, namespace, name string, _ int32, _ io.ReadWriteCloser) error {
	return p.lacks(ctx, namespace, name, "port-forward: reach the job in the network of its site")
}

// lacks refuses a request that the protocol does not have, for a pod that is there.
func (p *provider) lacks(ctx context.Context, namespace, name, what string) error {
	if _, err := p.GetPod(ctx, namespace, name); err != nil {
		return err
	}
	return errdefs.InvalidInputf("pod %s/%s: the InterLink protocol has no %s", namespace, name, what)
}

// GetStatsSummary implements nodeutil.Provider: the protocol tells nothing of what pods use.
func (p *provider) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: p.in.NodeName}}, nil
}

// GetMetricsResource implements nodeutil.Provider: there are none.
func (p *provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
