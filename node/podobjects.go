// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/objects"
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

// useObjects decides where ConfigMaps and Secrets come from: by name from the
// store, or from the caller's own informers.
func (c *PodController) useObjects(cfg *PodControllerConfig) {
	c.env = podenv.Config{
		Services:        cfg.ServiceInformer.Lister(),
		Recorder:        cfg.EventRecorder,
		NodeAllocatable: cfg.NodeAllocatable,
		HostIPs:         c.hostIPs,
	}
	c.synced = []cache.InformerSynced{c.informer.HasSynced, cfg.ServiceInformer.Informer().HasSynced}
	if byName, ok := cfg.ConfigMapInformer.(interface{ Store() *objects.Store }); ok {
		c.store = byName.Store()
		c.env.Objects = c.store
		return
	}
	c.env.Objects = objects.FromListers(cfg.ConfigMapInformer.Lister(), cfg.SecretInformer.Lister())
	c.synced = append(c.synced, cfg.ConfigMapInformer.Informer().HasSynced, cfg.SecretInformer.Informer().HasSynced)
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

// objectsOf reads for one pod, and remembers what must not be said about it.
type objectsOf struct {
	c   *PodController
	uid types.UID
}

// ConfigMap reads a ConfigMap.
func (o objectsOf) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return o.c.env.Objects.ConfigMap(ctx, namespace, name)
}

// Secret reads a Secret.
func (o objectsOf) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return o.c.secrets.ReadSecret(ctx, o.uid, namespace, name)
}
