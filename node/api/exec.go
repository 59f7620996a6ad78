// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// ContainerExecHandlerFunc runs a command in a container and returns when the command has ended. ctx ends when
// the client goes away, or the server stops.
//
// A command that ends with an exit code other than 0 is an error that is or wraps a k8s.io/utils/exec.ExitError;
// the client gets the code. Every other error reaches the client as an internal error with its text.
type ContainerExecHandlerFunc func(ctx context.Context, namespace, podName, containerName string, cmd []string, attach AttachIO) error

// ContainerExecHandlerConfig holds the limits of exec and attach.
type ContainerExecHandlerConfig struct {
	// StreamIdleTimeout ends a connection without traffic after this time. Zero means 4 hours.
	StreamIdleTimeout time.Duration
	// StreamCreationTimeout limits how long the client may take to create its streams. Zero means 30 seconds. It applies only to SPDY: over
	// WebSocket the streams exist from the start.
	StreamCreationTimeout time.Duration
}

// ContainerExecHandlerOption changes a ContainerExecHandlerConfig.
type ContainerExecHandlerOption func(*ContainerExecHandlerConfig)

// WithExecStreamIdleTimeout sets StreamIdleTimeout.
func WithExecStreamIdleTimeout(d time.Duration) ContainerExecHandlerOption {
	return func(cfg *ContainerExecHandlerConfig) { cfg.StreamIdleTimeout = d }
}

// WithExecStreamCreationTimeout sets StreamCreationTimeout.
func WithExecStreamCreationTimeout(d time.Duration) ContainerExecHandlerOption {
	return func(cfg *ContainerExecHandlerConfig) { cfg.StreamCreationTimeout = d }
}

func execTimeouts(opts []ContainerExecHandlerOption) streamTimeouts {
	var cfg ContainerExecHandlerConfig
	for _, opt := range opts {
		opt(&cfg)
	}
	return makeStreamTimeouts(cfg.StreamIdleTimeout, cfg.StreamCreationTimeout)
}

// HandleContainerExec returns a handler that runs commands with h. The route must have the variables namespace,
// pod and container, of gorilla/mux or of http.ServeMux. With a nil h the handler answers 501.
func HandleContainerExec(h ContainerExecHandlerFunc, opts ...ContainerExecHandlerOption) http.HandlerFunc {
	if h == nil {
		return NotImplemented
	}
	timeouts := execTimeouts(opts)
	return answerErrors(func(w http.ResponseWriter, req *http.Request) error {
		t, err := containerTarget(req)
		if err != nil {
			return err
		}
		streams, err := parseStreamOptions(req.URL.Query())
		if err != nil {
			return err
		}
		command, err := parseCommand(req)
		if err != nil {
			return err
		}
		return serveRemoteCommand(w, req, upgrade{verb: verbExec, target: t, timeouts: timeouts}, streams, func(ctx context.Context, attach AttachIO) error {
			if err := h(ctx, t.Namespace, t.Pod, t.Container, command, attach); err != nil {
				return fmt.Errorf("exec in %s: %w", t, err)
			}
			return nil
		})
	})
}
