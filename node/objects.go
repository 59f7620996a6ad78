// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
)

// PodObjects reads for pods of this node. It can be used from any goroutine, as soon as
// pods are there: within CreatePod for example. What is read of Secrets for a pod is
// taken out of whatever is said about the pod later.
type PodObjects interface {
	// ConfigMap returns a ConfigMap in the namespace of the pod. It is shared: copy it before changing
	// it. One that does not exist is an error for which apierrors.IsNotFound is true; any
	// other error says nothing about it.
	ConfigMap(ctx context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error)
	// Secret is as ConfigMap, for a Secret.
	Secret(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error)
	// Container returns a copy of the container of that name, of any kind, with its environment
	// resolved and command and args expanded. The addresses are those in the status of pod, and
	// a variable for an address that is not there keeps its ValueFrom. The error
	// says what is missing, and is fit for the status of the container.
	Container(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Container, error)
}

// podObjects is what a PodObjectsUser is given.
type podObjects struct{ c *PodController }

func (o podObjects) ConfigMap(ctx context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	return objectsOf{o.c, pod.UID}.ConfigMap(ctx, pod.Namespace, name)
}

func (o podObjects) Secret(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error) {
	return objectsOf{o.c, pod.UID}.Secret(ctx, pod.Namespace, name)
}

func (o podObjects) Container(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	bounded, cancel := context.WithTimeout(ctx, podRequestTimeout)
	defer cancel()
	env := o.c.env
	env.Objects = objectsOf{o.c, pod.UID}
	return podenv.ResolveContainer(bounded, env, pod, name)
}

// offerObjects tells a provider that wants to know where it reads.
func (c *PodController) offerObjects(ctx context.Context) error {
	user, ok := c.provider.(PodObjectsUser)
	if !ok {
		return nil
	}
	return (&providercall.Caller{}).Do(ctx, "UsePodObjects", func(context.Context) error {
		user.UsePodObjects(podObjects{c})
		return nil
	})
}

// background runs what the provider has to do while the node runs, and ends the controller if that
// ends before it.
func (c *PodController) background(ctx context.Context, end context.CancelCauseFunc) {
	runner, ok := c.provider.(BackgroundRunner)
	if !ok {
		return
	}
	err := (&providercall.Caller{}).Do(ctx, "RunInBackground", runner.RunInBackground)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		err = errors.New("it returned while the node runs")
	}
	end(fmt.Errorf("the provider's work in the background: %w", err))
}
