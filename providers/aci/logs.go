// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Logs implements service.LogReader. ACI returns the last lines of a log, 4 MB at most, and has no log of an
// earlier run.
func (d *driver) Logs(ctx context.Context, of service.Target[instance], opts api.ContainerLogOpts) (io.ReadCloser, error) {
	if opts.Previous {
		return nil, errdefs.InvalidInput("ACI keeps no log of the run before")
	}
	tail := int32(0)
	if !opts.Follow { // else a line without an end may be the only one, and then all would be new
		tail = int32(min(opts.Tail, 1<<20))
	}
	return logs.Reread{
		Every: d.followEvery,
		Ended: func() bool { return d.ended(of) },
		Read: func(ctx context.Context, _ time.Time, ended bool) ([]logs.Line, error) {
			text, err := d.client.logs(ctx, value(of.Instance.group.Name), of.Container, tail)
			if end := strings.LastIndexByte(text, '\n') + 1; !ended { // the last line may grow
				text = text[:end]
			}
			return logs.Stamped(text), err
		},
	}.Open(ctx, opts, time.Now())
}

// ended reports whether a container has ended and is not started again.
func (d *driver) ended(of service.Target[instance]) bool {
	pod, _, ok := d.kit.Cache().Get(of.Pod.UID)
	if !ok || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	now := service.StateOf(pod, of.Container)
	if now == nil || now.State.Terminated == nil {
		return false
	}
	again := true
	_ = service.Containers(pod, func(c *corev1.Container, _ bool, _ *field.Path) error { // the callback returns no error
		if c.Name == of.Container {
			again = podstatus.RestartsAfter(pod, c, now.State.Terminated.ExitCode)
		}
		return nil
	})
	return !again
}
