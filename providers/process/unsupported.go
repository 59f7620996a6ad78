// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// unsupported implements the CRI methods that podruntime does not call.
type unsupported struct{}

func unimplementedCall(call string) error {
	return status.Errorf(codes.Unimplemented, "the process provider has no %s", call)
}

// Exec, Attach and PortForward would have to return a URL; use StreamExec, StreamAttach and StreamPort instead.
func (unsupported) Exec(context.Context, *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return nil, unimplementedCall("Exec")
}

func (unsupported) Attach(context.Context, *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return nil, unimplementedCall("Attach")
}

func (unsupported) PortForward(context.Context, *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return nil, unimplementedCall("PortForward")
}

func (unsupported) CheckpointContainer(context.Context, *runtimeapi.CheckpointContainerRequest) error {
	return unimplementedCall("CheckpointContainer")
}

func (unsupported) CheckpointPod(context.Context, *runtimeapi.CheckpointPodRequest) error {
	return unimplementedCall("CheckpointPod")
}

func (unsupported) RestorePod(context.Context, *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	return nil, unimplementedCall("RestorePod")
}

func (unsupported) UpdatePodSandboxResources(context.Context, *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return nil, unimplementedCall("UpdatePodSandboxResources")
}

func (unsupported) ListMetricDescriptors(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return nil, unimplementedCall("ListMetricDescriptors")
}

func (unsupported) ListPodSandboxMetrics(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return nil, unimplementedCall("ListPodSandboxMetrics")
}

func (unsupported) PodSandboxStats(context.Context, string) (*runtimeapi.PodSandboxStats, error) {
	return nil, unimplementedCall("PodSandboxStats")
}

// UpdateRuntimeConfig ignores the pod CIDR of the node: the runtime does not allocate addresses from it.
func (unsupported) UpdateRuntimeConfig(context.Context, *runtimeapi.RuntimeConfig) error { return nil }

func (unsupported) RuntimeConfig(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}}, nil
}
