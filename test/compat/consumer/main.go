// SPDX-License-Identifier: Apache-2.0

// Command consumer is like a provider's program outside of this repository: its k8s.io libraries are two minor
// versions behind the newest, and one line of its go.mod replaces the library by this tree.
//
// Note: it is not run. The test is whether it builds, and with which versions.
package main

import (
	"context"
	"errors"
	"io"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

func main() {
	cli.Main(cli.Provider{Name: "consumer", New: func(context.Context, cli.ProviderInput) (nodeutil.Provider, error) {
		return &provider{}, nil
	}})
}

// newNode is the equivalent for a program with a main of its own.
func newNode(name string, opts ...nodeutil.NodeOpt) (*nodeutil.Node, error) {
	return nodeutil.NewNode(name, func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return &provider{}, node.NaiveNodeProvider{}, nil
	}, opts...)
}

// logOptions is a program's own form of the requested options, which it sends on to its backend.
type logOptions struct {
	Tail         int
	LimitBytes   int
	Timestamps   bool
	Follow       bool
	Previous     bool
	SinceSeconds int
	SinceTime    time.Time
}

var errNone = errors.New("there is no backend")

type provider struct{}

func (*provider) CreatePod(context.Context, *corev1.Pod) error { return errNone }
func (*provider) UpdatePod(context.Context, *corev1.Pod) error { return errNone }
func (*provider) DeletePod(context.Context, *corev1.Pod) error {
	return errdefs.NotFound("no such pod")
}

func (*provider) GetPod(context.Context, string, string) (*corev1.Pod, error) {
	return nil, errdefs.NotFound("no such pod")
}

func (*provider) GetPodStatus(context.Context, string, string) (*corev1.PodStatus, error) {
	return nil, errdefs.NotFound("no such pod")
}

func (*provider) GetPods(context.Context) ([]*corev1.Pod, error) { return nil, nil }

func (p *provider) GetContainerLogs(_ context.Context, _, _, _ string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	return p.logs(logOptions(opts))
}

// logs stands for a backend that gets requests in the library's terms.
func (*provider) logs(opts logOptions) (io.ReadCloser, error) {
	_ = api.ContainerLogOpts(opts)
	return nil, errNone
}

func (*provider) RunInContainer(context.Context, string, string, string, []string, api.AttachIO) error {
	return errNone
}

func (*provider) AttachToContainer(context.Context, string, string, string, api.AttachIO) error {
	return errNone
}

func (*provider) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return nil, errNone
}

func (*provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) {
	return nil, errNone
}

func (*provider) PortForward(context.Context, string, string, int32, io.ReadWriteCloser) error {
	return errNone
}
