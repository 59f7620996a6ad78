// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// redacted wraps the provider for HTTP requests. It removes the secrets of pods from errors, which appear in logs and responses. The
// content of streams and logs is unchanged.
type redacted struct {
	Provider
	pods *node.PodController
}

// redact redacts the error of a call. A panic continues with its text redacted, unless it is http.ErrAbortHandler.
func (r redacted) redact(namespace, name string, err *error) {
	if v := recover(); v != nil {
		if err, is := v.(error); !is || !errors.Is(err, http.ErrAbortHandler) {
			v = r.pods.RedactError(namespace, name, fmt.Errorf("%v", v)).Error()
		}
		panic(v)
	}
	*err = r.pods.RedactError(namespace, name, *err)
}

// GetContainerLogs returns the log of a container.
func (r redacted) GetContainerLogs(ctx context.Context, namespace, pod, container string, opts api.ContainerLogOpts) (log io.ReadCloser, err error) {
	defer r.redact(namespace, pod, &err)
	return r.Provider.GetContainerLogs(ctx, namespace, pod, container, opts)
}

// RunInContainer runs a command.
func (r redacted) RunInContainer(ctx context.Context, namespace, pod, container string, cmd []string, attach api.AttachIO) (err error) {
	defer r.redact(namespace, pod, &err)
	return r.Provider.RunInContainer(ctx, namespace, pod, container, cmd, attach)
}

// AttachToContainer attaches to a container.
func (r redacted) AttachToContainer(ctx context.Context, namespace, pod, container string, attach api.AttachIO) (err error) {
	defer r.redact(namespace, pod, &err)
	return r.Provider.AttachToContainer(ctx, namespace, pod, container, attach)
}

// PortForward forwards a port.
func (r redacted) PortForward(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) (err error) {
	defer r.redact(namespace, pod, &err)
	return r.Provider.PortForward(ctx, namespace, pod, port, stream)
}

// GetPods lists the pods of the backend, with redacted statuses.
func (r redacted) GetPods(ctx context.Context) (pods []*corev1.Pod, err error) {
	defer r.redact("", "", &err)
	got, err := r.Provider.GetPods(ctx)
	for _, pod := range got {
		if pod != nil {
			shown := *pod
			shown.Status = *pod.Status.DeepCopy()
			r.pods.RedactStatus(pod.Namespace, pod.Name, &shown.Status)
			pods = append(pods, &shown)
		}
	}
	return pods, err
}

// GetStatsSummary returns the usage of the node and its pods.
func (r redacted) GetStatsSummary(ctx context.Context) (s *statsv1alpha1.Summary, err error) {
	defer r.redact("", "", &err)
	return r.Provider.GetStatsSummary(ctx)
}

// GetMetricsResource returns the metrics for metrics-server.
func (r redacted) GetMetricsResource(ctx context.Context) (m []*dto.MetricFamily, err error) {
	defer r.redact("", "", &err)
	return r.Provider.GetMetricsResource(ctx)
}
