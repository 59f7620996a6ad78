// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"fmt"
	"io"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// requireField returns an error if a required field of a response is missing.
func requireField(is bool, what string) error {
	if is {
		return nil
	}
	return fmt.Errorf("the container runtime answered without the %s", what)
}

// Version returns name and version of the runtime.
func (c *Client) Version(ctx context.Context, apiVersion string) (*runtimeapi.VersionResponse, error) {
	answer, err := c.runtime.Version(ctx, &runtimeapi.VersionRequest{Version: apiVersion})
	if err != nil {
		return nil, err
	}
	return answer, requireField(answer.GetRuntimeName() != "" && answer.GetRuntimeVersion() != "", "version of itself")
}

// Status returns whether the runtime and the network are ready.
func (c *Client) Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	answer, err := c.runtime.Status(ctx, &runtimeapi.StatusRequest{Verbose: verbose})
	if err != nil {
		return nil, err
	}
	return answer, requireField(answer.GetStatus() != nil, "status of itself")
}

// RuntimeConfig returns the configuration of the runtime, such as its driver for cgroups.
func (c *Client) RuntimeConfig(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return c.runtime.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
}

// UpdateRuntimeConfig sends the runtime its configuration, such as the pod CIDR of the node.
func (c *Client) UpdateRuntimeConfig(ctx context.Context, config *runtimeapi.RuntimeConfig) error {
	_, err := c.runtime.UpdateRuntimeConfig(ctx, &runtimeapi.UpdateRuntimeConfigRequest{RuntimeConfig: config})
	return err
}

// GetContainerEvents sends the runtime's events to the channel until the stream ends. It always returns an error:
// io.EOF if the runtime ended the stream, Unimplemented if it does not support events. The caller must list
// containers to find the changes between two streams.
func (c *Client) GetContainerEvents(ctx context.Context, events chan *runtimeapi.ContainerEventResponse, connected func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	ctx, cancel := context.WithCancel(ctx) // end the stream at every return
	defer cancel()
	stream, err := c.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return err
	}
	if connected != nil {
		connected(stream)
	}
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		if err != nil {
			return err
		}
		select {
		case events <- event:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ContainerStats returns the resource usage of a container.
func (c *Client) ContainerStats(ctx context.Context, id string) (*runtimeapi.ContainerStats, error) {
	answer, err := c.runtime.ContainerStats(ctx, &runtimeapi.ContainerStatsRequest{ContainerId: id})
	return answer.GetStats(), err
}

// ListContainerStats returns the resource usage of the containers that match filter.
func (c *Client) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	answer, err := c.runtime.ListContainerStats(ctx, &runtimeapi.ListContainerStatsRequest{Filter: filter})
	return answer.GetStats(), err
}

// PodSandboxStats returns the resource usage of a pod.
func (c *Client) PodSandboxStats(ctx context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
	answer, err := c.runtime.PodSandboxStats(ctx, &runtimeapi.PodSandboxStatsRequest{PodSandboxId: id})
	return answer.GetStats(), err
}

// ListPodSandboxStats returns the resource usage of the pods that match filter.
func (c *Client) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	answer, err := c.runtime.ListPodSandboxStats(ctx, &runtimeapi.ListPodSandboxStatsRequest{Filter: filter})
	return answer.GetStats(), err
}

// ListMetricDescriptors describes the result of ListPodSandboxMetrics.
func (c *Client) ListMetricDescriptors(ctx context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	answer, err := c.runtime.ListMetricDescriptors(ctx, &runtimeapi.ListMetricDescriptorsRequest{})
	return answer.GetDescriptors(), err
}

// ListPodSandboxMetrics returns metrics of all pods.
func (c *Client) ListPodSandboxMetrics(ctx context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	answer, err := c.runtime.ListPodSandboxMetrics(ctx, &runtimeapi.ListPodSandboxMetricsRequest{})
	return answer.GetPodMetrics(), err
}
