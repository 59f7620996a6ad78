// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"net/http"
)

// ContainerAttachHandlerFunc connects the client to the streams of a running container and returns when the container has ended. ctx ends
// when the client goes away. Errors are the same as for ContainerExecHandlerFunc.
type ContainerAttachHandlerFunc func(ctx context.Context, namespace, podName, containerName string, attach AttachIO) error

// HandleContainerAttach returns a handler that attaches to containers with h. The route must have the variables
// namespace, pod and container, of gorilla/mux or of http.ServeMux. With a nil h the handler answers 501.
func HandleContainerAttach(h ContainerAttachHandlerFunc, opts ...ContainerExecHandlerOption) http.HandlerFunc {
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
		return serveRemoteCommand(w, req, upgrade{verb: verbAttach, target: t, timeouts: timeouts}, streams, func(ctx context.Context, attach AttachIO) error {
			if err := h(ctx, t.Namespace, t.Pod, t.Container, attach); err != nil {
				return fmt.Errorf("attach to %s: %w", t, err)
			}
			return nil
		})
	})
}
