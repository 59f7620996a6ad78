// SPDX-License-Identifier: Apache-2.0

package fakecri

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Call is one call of a client.
type Call struct {
	Method string
	// Subject is the object of the call: "namespace/pod" for a sandbox, "namespace/pod/container" for a
	// container, the name of an image, or "".
	Subject string
	// At is the start time of the call, and Took its duration. A call in progress has no Ended.
	At    time.Time
	Took  time.Duration
	Ended bool
	// Err is the client's error.
	Err error
}

// String returns the method and its subject.
func (c Call) String() string { return strings.TrimSpace(c.Method + " " + c.Subject) }

// Calls returns the calls of these methods so far, or all calls, in the order in which they began.
func (r *Runtime) Calls(methods ...string) []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []Call
	for _, c := range r.calls {
		if len(methods) == 0 || slices.Contains(methods, c.Method) {
			calls = append(calls, *c)
		}
	}
	return calls
}

// changing are the methods that change the runtime.
var changing = []string{
	"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "CreateContainer", "StartContainer", "StopContainer",
	"RemoveContainer", "UpdateContainerResources", "UpdatePodSandboxResources", "PullImage", "RemoveImage",
}

// Changes returns the calls of changing methods, as strings such as "StartContainer namespace/pod/container".
func (r *Runtime) Changes() []string {
	var lines []string
	for _, c := range r.Calls(changing...) {
		lines = append(lines, c.String())
	}
	return lines
}

// faults are the faults of the next calls of a method.
type faults struct {
	delay  time.Duration
	before []error
	after  []error
	always error
	hang   int
}

// Fail makes the next n calls of a method fail before they do anything. With n < 0, all calls fail. A nil error
// ends the fault.
func (r *Runtime) Fail(method string, n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.faultsOf(method)
	if err == nil {
		f.before, f.after, f.always, f.hang = nil, nil, nil, 0
		return
	}
	if n < 0 {
		f.always = err
	}
	f.before = append(f.before, repeatError(n, err)...)
}

// Lose makes the next n calls of a method do their work and then fail, as when the response is lost.
func (r *Runtime) Lose(method string, n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.faultsOf(method)
	f.after = append(f.after, repeatError(n, err)...)
}

// Hang makes the next n calls of a method wait until their context ends or the runtime restarts.
func (r *Runtime) Hang(method string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faultsOf(method).hang += n
}

// Delay makes all calls of a method take this time.
func (r *Runtime) Delay(method string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faultsOf(method).delay = d
}

func (r *Runtime) faultsOf(method string) *faults {
	if r.faults[method] == nil {
		r.faults[method] = &faults{}
	}
	return r.faults[method]
}

func repeatError(n int, err error) []error {
	if n < 0 {
		return nil
	}
	return slices.Repeat([]error{err}, n)
}

func popError(list *[]error) error {
	if len(*list) == 0 {
		return nil
	}
	err := (*list)[0]
	*list = (*list)[1:]
	return err
}

// runCall runs every call: it records the call, applies the faults, and then calls f without the lock of the runtime.
func runCall[T any](ctx context.Context, c *Client, method, id string, f func() (T, error)) (T, error) {
	call, pass, lost := c.beginCall(method, id)
	var answer, none T
	err := pass(ctx)
	if err == nil {
		err = statusOf(ctx.Err())
	}
	if err == nil {
		answer, err = f()
	}
	if err == nil {
		err = lost
	}
	c.runtime.mu.Lock()
	call.Took, call.Ended, call.Err = time.Since(call.At), true, err
	if call.Subject == id {
		call.Subject = c.runtime.subjectOf(id) // the call itself created it
	}
	c.runtime.mu.Unlock()
	if err != nil {
		return none, err
	}
	return answer, nil
}

// runAction is runCall for a call without a response.
func (c *Client) runAction(ctx context.Context, method, id string, f func() error) error {
	_, err := runCall(ctx, c, method, id, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// beginCall records a call. It returns a function that waits until the call may continue, and the error that replaces the call's response.
func (c *Client) beginCall(method, id string) (call *Call, pass func(context.Context) error, lost error) {
	r := c.runtime
	r.mu.Lock()
	defer r.mu.Unlock()
	call = &Call{Method: method, Subject: r.subjectOf(id), At: time.Now()}
	r.calls = append(r.calls, call)
	if c.closed {
		return call, func(context.Context) error { return status.Error(codes.Canceled, "the client connection is closing") }, nil
	}
	f := r.faultsOf(method)
	err, lost := f.always, popError(&f.after)
	if next := popError(&f.before); next != nil {
		err = next
	}
	hang := f.hang > 0
	if hang {
		f.hang--
	}
	delay, restarted := f.delay, r.restarted
	return call, func(ctx context.Context) error {
		if hang {
			return awaitDone[struct{}](ctx, nil, restarted)
		}
		if delay > 0 {
			timer := time.NewTimer(delay)
			defer timer.Stop()
			if err := awaitDone(ctx, timer.C, restarted); err != nil {
				return err
			}
		}
		return err
	}, lost
}

// awaitDone returns nil if done happens first, and otherwise the error of a gRPC client.
func awaitDone[T any](ctx context.Context, done <-chan T, restarted <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return statusOf(ctx.Err())
	case <-restarted:
		return status.Error(codes.Unavailable, "the runtime has ended")
	}
}

// statusOf turns the error of a context into the error of a gRPC client.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	return status.FromContextError(err).Err()
}

// subjectOf returns the subject of an identifier. The caller holds r.mu.
func (r *Runtime) subjectOf(id string) string {
	if s := r.sandboxes[id]; s != nil {
		return s.podPath()
	}
	if c := r.containers[id]; c != nil {
		return c.containerPath()
	}
	return id
}

func (s *sandbox) podPath() string { return podName(s.config) }

func podName(config *runtimeapi.PodSandboxConfig) string {
	return config.GetMetadata().GetNamespace() + "/" + config.GetMetadata().GetName()
}

func (c *container) containerPath() string {
	return c.sandbox.podPath() + "/" + c.config.GetMetadata().GetName()
}

func cloneMessage[T proto.Message](m T) T { return proto.CloneOf(m) }
