// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/exec"
)

// CreateContainer creates a container in a sandbox and returns its id.
func (c *Client) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (string, error) {
	answer, err := c.runtime.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: config, SandboxConfig: sandboxConfig})
	if err != nil {
		return "", err
	}
	return answer.GetContainerId(), requireField(answer.GetContainerId() != "", "id of the container that it created")
}

// StartContainer starts a created container.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	_, err := c.runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id})
	return err
}

// StopContainer stops a container, and kills it after timeout seconds.
func (c *Client) StopContainer(ctx context.Context, id string, timeout int64) error {
	_, err := c.runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: timeout})
	return err
}

// RemoveContainer removes a container, killing it if it runs.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	_, err := c.runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	return err
}

// ListContainers returns the containers that match filter.
func (c *Client) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	answer, err := c.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: filter})
	return answer.GetContainers(), err
}

// ContainerStatus returns the status of a container.
func (c *Client) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	answer, err := c.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: verbose})
	if err != nil {
		return nil, err
	}
	s := answer.GetStatus()
	return answer, requireField(s.GetId() != "" && s.GetMetadata().GetName() != "" && s.GetCreatedAt() != 0, "status of container "+id)
}

// UpdateContainerResources changes the limits of a container.
func (c *Client) UpdateContainerResources(ctx context.Context, id string, resources *runtimeapi.ContainerResources) error {
	_, err := c.runtime.UpdateContainerResources(ctx, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id, Linux: resources.GetLinux(), Windows: resources.GetWindows()})
	return err
}

// ExecSync runs a command in a container and returns its output. A timeout of 0 means none. If the exit code is
// not 0, the error is an exec.ExitError of k8s.io/utils/exec.
func (c *Client) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	// Runtimes use whole seconds, and 0 means none.
	whole := int64((timeout + time.Second - 1) / time.Second)
	answer, err := c.runtime.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: cmd, Timeout: whole})
	if err != nil {
		if status.Code(err) == codes.DeadlineExceeded {
			err = fmt.Errorf("command %q timed out after %v: %w", strings.Join(cmd, " "), timeout, context.DeadlineExceeded)
		}
		return nil, nil, err
	}
	if code := answer.GetExitCode(); code != 0 {
		err = exec.CodeExitError{Err: fmt.Errorf("command %q exited with %d: %s", strings.Join(cmd, " "), code, answer.GetStderr()), Code: int(code)}
	}
	return answer.GetStdout(), answer.GetStderr(), err
}

// Exec returns the URL of a streaming session that runs a command in a container.
func (c *Client) Exec(ctx context.Context, request *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	answer, err := c.runtime.Exec(ctx, request)
	if err != nil {
		return nil, err
	}
	return answer, requireField(answer.GetUrl() != "", "URL for exec")
}

// Attach returns the URL of a streaming session with a container's main process.
func (c *Client) Attach(ctx context.Context, request *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	answer, err := c.runtime.Attach(ctx, request)
	if err != nil {
		return nil, err
	}
	return answer, requireField(answer.GetUrl() != "", "URL for attach")
}

// ReopenContainerLog makes the runtime reopen the log of a container, after a rotation.
func (c *Client) ReopenContainerLog(ctx context.Context, id string) error {
	_, err := c.runtime.ReopenContainerLog(ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: id})
	return err
}

// CheckpointContainer writes a container to a file.
func (c *Client) CheckpointContainer(ctx context.Context, options *runtimeapi.CheckpointContainerRequest) error {
	_, err := c.runtime.CheckpointContainer(ctx, options)
	return err
}
