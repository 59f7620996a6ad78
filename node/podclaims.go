// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podclaims"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
)

// PodClaims finds the PersistentVolumes of pods of this node. It can be used from any goroutine.
type PodClaims interface {
	// PersistentVolume returns what a volume of the pod, by its name there, is bound to: one of the kind
	// persistentVolumeClaim or ephemeral. Of the pod only namespace, name and UID count; a volume that claims nothing is an
	// error of the kind invalid-input, and a pod that is not this node's, or has ended, one of the kind not-found. Other
	// errors say as a kubelet does what is missing, and pass: the claim is not bound yet, for example, or the
	// volume is another node's.
	PersistentVolume(ctx context.Context, pod *corev1.Pod, volume string) (*corev1.PersistentVolume, error)
}

// podClaims is what a PodClaimsUser is given.
type podClaims struct {
	c      *PodController
	reader *podclaims.Reader // nil: the client cannot read them
}

var errNoClaims = errors.New("this node has no client that reads PersistentVolumes")

// useClaims decides where claims and their volumes are read: each by its name, when it is asked for.
func (c *PodController) useClaims(cfg *PodControllerConfig) {
	c.claims = podClaims{c: c}
	client, ok := cfg.PodClient.(corev1client.CoreV1Interface)
	if !ok {
		return
	}
	await := func(ctx context.Context, resource, namespace, name string) {
		if c.store != nil {
			c.store.Await(ctx, authorizationv1.ResourceAttributes{Verb: "get", Resource: resource, Namespace: namespace, Name: name})
		}
	}
	c.claims.reader = &podclaims.Reader{
		Claim: func(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
			await(ctx, "persistentvolumeclaims", namespace, name)
			return client.PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		Volume: func(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
			await(ctx, "persistentvolumes", "", name)
			return client.PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		},
		Node: func(ctx context.Context) (*corev1.Node, error) {
			return client.Nodes().Get(ctx, c.nodeName, metav1.GetOptions{})
		},
	}
}

// PersistentVolume finds the volume for a pod of this node.
func (p podClaims) PersistentVolume(ctx context.Context, pod *corev1.Pod, volume string) (*corev1.PersistentVolume, error) {
	if p.reader == nil {
		return nil, errNoClaims
	}
	api, err := p.c.secrets.Pod(pod)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, podRequestTimeout)
	defer cancel()
	return p.reader.Find(ctx, api, volume)
}

// offerClaims tells a provider that wants to know where it finds them.
func (c *PodController) offerClaims(ctx context.Context) error {
	user, ok := c.provider.(PodClaimsUser)
	if !ok {
		return nil
	}
	return (&providercall.Caller{}).Do(ctx, "UsePodClaims", func(context.Context) error {
		user.UsePodClaims(c.claims)
		return nil
	})
}
