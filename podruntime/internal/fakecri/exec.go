// SPDX-License-Identifier: Apache-2.0

package fakecri

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"
)

// Answer is the result of a command in a container.
type Answer struct {
	Stdout, Stderr string
	Code           int
	Takes          time.Duration
	// Err is an error of the runtime: the command did not run.
	Err error
}

// ExecSync runs a command in a running container. An exit code other than 0 is an utilexec.CodeExitError. A command that exceeds timeout returns the
// status DeadlineExceeded.
func (c *Client) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	answer, err := runCall(ctx, c, "ExecSync", id, func() (Answer, error) { return c.runtime.execCommand(ctx, id, command, timeout) })
	if err == nil && answer.Code != 0 {
		err = utilexec.CodeExitError{
			Err:  fmt.Errorf("command '%s' exited with %d: %s", strings.Join(command, " "), answer.Code, answer.Stderr),
			Code: answer.Code,
		}
	}
	return []byte(answer.Stdout), []byte(answer.Stderr), err
}

func (r *Runtime) execCommand(ctx context.Context, id string, command []string, timeout time.Duration) (Answer, error) {
	found, restarted, err := r.forExec(id)
	if err != nil {
		return Answer{}, err
	}
	var answer Answer
	if r.config.Exec != nil {
		answer = r.config.Exec(ctx, found, command)
	}
	if answer.Err != nil {
		return Answer{}, answer.Err
	}
	takes := answer.Takes
	if late := timeout > 0 && takes > timeout; late {
		takes, err = timeout, status.Errorf(codes.DeadlineExceeded, "failed to exec in container: timeout %s exceeded", timeout)
	}
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-found.Done:
		return Answer{Code: 137, Stdout: answer.Stdout, Stderr: answer.Stderr}, nil
	case <-timer.C:
		return answer, err
	case <-ctx.Done():
		return Answer{}, statusOf(ctx.Err())
	case <-restarted:
		return Answer{}, status.Error(codes.Unavailable, "the runtime has ended")
	}
}

func (r *Runtime) forExec(id string) (Container, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	switch {
	case c == nil:
		return Container{}, nil, notFound("container", id)
	case c.state != runtimeapi.ContainerState_CONTAINER_RUNNING:
		return Container{}, nil, status.Errorf(codes.Unknown, "container is in %s state", c.state)
	}
	return c.publicView(), r.restarted, nil
}

func (r *Runtime) streamURL(request any, running func() error) (string, error) {
	if r.config.StreamURL == nil {
		return "", unimplementedError()
	}
	if err := running(); err != nil {
		return "", err
	}
	return r.config.StreamURL(request)
}

func (r *Runtime) checkRuns(id string) func() error {
	return func() error {
		_, _, err := r.forExec(id)
		return err
	}
}

// Exec returns the URL of Config.StreamURL.
func (c *Client) Exec(ctx context.Context, request *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return runCall(ctx, c, "Exec", request.GetContainerId(), func() (*runtimeapi.ExecResponse, error) {
		url, err := c.runtime.streamURL(cloneMessage(request), c.runtime.checkRuns(request.GetContainerId()))
		return &runtimeapi.ExecResponse{Url: url}, err
	})
}

// Attach returns the URL of Config.StreamURL.
func (c *Client) Attach(ctx context.Context, request *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return runCall(ctx, c, "Attach", request.GetContainerId(), func() (*runtimeapi.AttachResponse, error) {
		url, err := c.runtime.streamURL(cloneMessage(request), c.runtime.checkRuns(request.GetContainerId()))
		return &runtimeapi.AttachResponse{Url: url}, err
	})
}

// PortForward returns the URL of Config.StreamURL.
func (c *Client) PortForward(ctx context.Context, request *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	id := request.GetPodSandboxId()
	return runCall(ctx, c, "PortForward", id, func() (*runtimeapi.PortForwardResponse, error) {
		url, err := c.runtime.streamURL(cloneMessage(request), func() error {
			c.runtime.mu.Lock()
			defer c.runtime.mu.Unlock()
			switch s := c.runtime.sandboxes[id]; {
			case s == nil:
				return notFound("sandbox", id)
			case !s.ready:
				return status.Errorf(codes.Unknown, "sandbox container %q is not running", id)
			}
			return nil
		})
		return &runtimeapi.PortForwardResponse{Url: url}, err
	})
}

// ReopenContainerLog opens the log file of a running container again, after the file was renamed.
func (c *Client) ReopenContainerLog(ctx context.Context, id string) error {
	return c.runAction(ctx, "ReopenContainerLog", id, func() error {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		found := r.containers[id]
		switch {
		case found == nil:
			return notFound("container", id)
		case found.state != runtimeapi.ContainerState_CONTAINER_RUNNING:
			return status.Error(codes.Unknown, "container is not running")
		}
		return found.openLog()
	})
}
