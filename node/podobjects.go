// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
)

// PodObjects reads objects for pods of this node. It is safe for concurrent use, and works as soon as there are pods, for example in
// CreatePod. Values of Secrets that are read for a pod are removed from all later messages about the pod.
type PodObjects = podinputs.PodObjects

// podObjects implements PodObjects for a PodObjectsUser.
type podObjects struct {
	env     podenv.Config
	secrets *podsecrets.Manager
}

func (o podObjects) ConfigMap(ctx context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	return o.objectsOfPod(pod).ConfigMap(ctx, pod.Namespace, name)
}

func (o podObjects) Secret(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error) {
	return o.objectsOfPod(pod).Secret(ctx, pod.Namespace, name)
}

func (o podObjects) Container(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	bounded, cancel := context.WithTimeout(ctx, podRequestTimeout)
	defer cancel()
	env := o.env
	env.Objects = o.objectsOfPod(pod)
	return podenv.ResolveContainer(bounded, env, pod, name)
}

// resolveEnv resolves the environment of a private copy of a pod. It records warnings in found.
func (o podObjects) resolveEnv(ctx context.Context, pod *corev1.Pod, found record.EventRecorder) error {
	bounded, cancel := context.WithTimeout(ctx, podRequestTimeout)
	defer cancel()
	env := o.env
	env.Objects, env.Recorder = o.objectsOfPod(pod), found
	return podenv.Resolve(bounded, env, pod)
}

func (o podObjects) objectsOfPod(pod *corev1.Pod) objectsOf { return objectsOf{o, pod.UID} }

// objectsOf reads objects for one pod, and records the secrets that must not appear in messages about it.
type objectsOf struct {
	podObjects
	uid types.UID
}

// ConfigMap reads a ConfigMap.
func (o objectsOf) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return o.env.Objects.ConfigMap(ctx, namespace, name)
}

// Secret reads a Secret.
func (o objectsOf) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return o.secrets.ReadSecret(ctx, o.uid, namespace, name)
}
