// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	dto "github.com/prometheus/client_model/go"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// GetContainerLogs returns a log of one line.
func (p *provider) GetContainerLogs(ctx context.Context, namespace, podName, containerName string, _ api.ContainerLogOpts) (io.ReadCloser, error) {
	if _, err := p.GetPod(ctx, namespace, podName); err != nil {
		return nil, err
	}
	return io.NopCloser(strings.NewReader("hello from " + podName + "/" + containerName + "\n")), nil
}

// RunInContainer prints the command, like echo.
func (p *provider) RunInContainer(_ context.Context, _, _, _ string, cmd []string, attach api.AttachIO) error {
	if out := attach.Stdout(); out != nil {
		_, err := fmt.Fprintln(out, strings.Join(cmd, " "))
		return err
	}
	return nil
}

// AttachToContainer copies the typed input to the output, like cat.
func (p *provider) AttachToContainer(_ context.Context, _, _, _ string, attach api.AttachIO) error {
	if attach.Stdin() == nil || attach.Stdout() == nil {
		return nil
	}
	_, err := io.Copy(attach.Stdout(), attach.Stdin())
	return err
}

// PortForward echoes received data, on every port.
func (p *provider) PortForward(_ context.Context, _, _ string, _ int32, stream io.ReadWriteCloser) error {
	_, err := io.Copy(stream, stream)
	return err
}

// GetStatsSummary returns no statistics.
func (p *provider) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{}, nil
}

// GetMetricsResource returns no metrics.
func (p *provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
