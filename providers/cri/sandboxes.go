// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RunPodSandbox starts a sandbox and returns its id.
func (c *Client) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	answer, err := c.runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: handler})
	if err != nil {
		return "", err
	}
	return answer.GetPodSandboxId(), requireField(answer.GetPodSandboxId() != "", "id of the sandbox that it started")
}

// StopPodSandbox stops a sandbox, its containers and its network.
func (c *Client) StopPodSandbox(ctx context.Context, id string) error {
	_, err := c.runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	return err
}

// RemovePodSandbox removes a sandbox and its containers.
func (c *Client) RemovePodSandbox(ctx context.Context, id string) error {
	_, err := c.runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	return err
}

// PodSandboxStatus returns the status of a sandbox.
func (c *Client) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	answer, err := c.runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id, Verbose: verbose})
	if err != nil {
		return nil, err
	}
	s := answer.GetStatus()
	return answer, requireField(s.GetId() != "" && s.GetMetadata().GetUid() != "" && s.GetCreatedAt() != 0, "status of sandbox "+id)
}

// ListPodSandbox returns the sandboxes that match filter.
func (c *Client) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	answer, err := c.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: filter})
	return answer.GetItems(), err
}

// PortForward returns the URL of a port-forward session with a sandbox.
func (c *Client) PortForward(ctx context.Context, request *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	answer, err := c.runtime.PortForward(ctx, request)
	if err != nil {
		return nil, err
	}
	return answer, requireField(answer.GetUrl() != "", "URL for port-forward")
}

// UpdatePodSandboxResources changes the resources of a whole pod.
func (c *Client) UpdatePodSandboxResources(ctx context.Context, request *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return c.runtime.UpdatePodSandboxResources(ctx, request)
}

// CheckpointPod writes a pod to files.
func (c *Client) CheckpointPod(ctx context.Context, options *runtimeapi.CheckpointPodRequest) error {
	_, err := c.runtime.CheckpointPod(ctx, options)
	return err
}

// RestorePod starts a pod from a checkpoint.
func (c *Client) RestorePod(ctx context.Context, options *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	return c.runtime.RestorePod(ctx, options)
}
