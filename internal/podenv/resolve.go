// SPDX-License-Identifier: Apache-2.0

package podenv

import (
	"context"
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Objects returns ConfigMaps and Secrets by name. The error for an object that does not exist satisfies apierrors.IsNotFound; after any other error,
// it is unknown whether the object exists, and a retry makes sense. Objects are shared and read-only.
type Objects interface {
	// ConfigMap returns the ConfigMap of this name.
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	// Secret returns the Secret of this name.
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Services reads services. The objects are shared and read-only.
type Services interface {
	// ListServices returns the services of a namespace.
	ListServices(namespace string) ([]*corev1.Service, error)
	// GetService returns a service by its name. The error for a service that does not exist satisfies
	// apierrors.IsNotFound.
	GetService(namespace, name string) (*corev1.Service, error)
}

// Recorder writes events.
type Recorder interface {
	Event(object runtime.Object, eventType, reason, message string)
}

// Config has the sources of the values for a pod.
type Config struct {
	// Objects reads the ConfigMaps and Secrets of the pod. Required for pods that reference any.
	Objects Objects
	// Services reads the services of the cluster from a synced cache. Nil means no service variables.
	Services Services
	// Recorder gets the warnings about missing objects. Nil means no events.
	Recorder Recorder
	// NodeAllocatable returns the allocatable resources of this node: the default for a limit that a container
	// does not set. Nil leaves such a variable to the provider.
	NodeAllocatable func() corev1.ResourceList
	// HostIPs returns the addresses of the host, for a pod whose status lacks them. Nil, or an empty result, leaves such a variable to the provider.
	HostIPs func() []corev1.HostIP
}

// Resolve replaces the environment of every container of pod (init, ordinary and ephemeral) by plain values, expands $(NAME) in env, command and
// args, and empties EnvFrom. The pod must be a private copy. After an error, it is partly changed and must not be used.
//
// The error is a *NotReadyError if a mandatory object does not exist, of the kind invalid-input if the pod requests something impossible, and any
// other error if an object could not be read: then retry.
func Resolve(ctx context.Context, cfg Config, pod *corev1.Pod) error {
	r, err := newResolver(cfg, pod)
	if err != nil {
		return err
	}
	for c, path := range allContainers(pod) {
		if err := r.resolveContainer(ctx, c, path); err != nil {
			return err
		}
	}
	return nil
}

// ResolveContainer returns a resolved copy of one container of pod, of any kind. It does not change the pod. The
// errors are those of Resolve; an error of the kind not-found means that the pod has no container with that
// name.
func ResolveContainer(ctx context.Context, cfg Config, pod *corev1.Pod, name string) (*corev1.Container, error) {
	for c, path := range allContainers(pod) {
		if c.Name != name {
			continue
		}
		r, err := newResolver(cfg, pod)
		if err != nil {
			return nil, err
		}
		c = c.DeepCopy()
		return c, r.resolveContainer(ctx, c, path)
	}
	return nil, errdefs.NotFoundf("pod %s/%s has no container %q", pod.Namespace, pod.Name, name)
}

// allContainers iterates over all containers of a pod of all kinds, with their field paths.
func allContainers(pod *corev1.Pod) iter.Seq2[*corev1.Container, *field.Path] {
	spec := field.NewPath("spec")
	return func(yield func(*corev1.Container, *field.Path) bool) {
		for i := range pod.Spec.InitContainers {
			if !yield(&pod.Spec.InitContainers[i], spec.Child("initContainers").Index(i)) {
				return
			}
		}
		for i := range pod.Spec.Containers {
			if !yield(&pod.Spec.Containers[i], spec.Child("containers").Index(i)) {
				return
			}
		}
		for i := range pod.Spec.EphemeralContainers {
			c := (*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
			if !yield(c, spec.Child("ephemeralContainers").Index(i)) {
				return
			}
		}
	}
}

func newResolver(cfg Config, pod *corev1.Pod) (*resolver, error) {
	services, err := serviceVariablesOf(cfg.Services, pod)
	if err != nil {
		return nil, fmt.Errorf("resolve environment of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return &resolver{cfg: cfg, pod: pod, services: services, sources: map[sourceKey]*source{}}, nil
}

// resolver is one call of Resolve. It reads every object once, so that all containers of a pod see the same version.
type resolver struct {
	cfg      Config
	pod      *corev1.Pod
	services serviceVariables
	sources  map[sourceKey]*source
}

func (r *resolver) resolveContainer(ctx context.Context, c *corev1.Container, path *field.Path) error {
	env := newEnvironment(r.services, len(c.Env))
	for i := range c.EnvFrom {
		if err := r.envFrom(ctx, env, c.Name, &c.EnvFrom[i]); err != nil {
			return err
		}
	}
	for i := range c.Env {
		declared := &c.Env[i]
		if declared.Value != "" || declared.ValueFrom == nil {
			env.set(corev1.EnvVar{Name: declared.Name, Value: Expand(declared.Value, env.lookUpValue)})
			continue
		}
		value, answer, err := r.valueFrom(ctx, c, declared.ValueFrom, path.Child("env").Index(i).Child("valueFrom"))
		if err != nil {
			return err
		}
		switch answer {
		case known:
			env.set(corev1.EnvVar{Name: declared.Name, Value: value})
		case unknown:
			env.set(corev1.EnvVar{Name: declared.Name, ValueFrom: declared.ValueFrom})
		case absent:
		}
	}
	for i := range c.Command {
		c.Command[i] = Expand(c.Command[i], env.lookUpValue)
	}
	for i := range c.Args {
		c.Args[i] = Expand(c.Args[i], env.lookUpValue)
	}
	c.EnvFrom = []corev1.EnvFromSource{}
	c.Env = env.list()
	return nil
}

// answer is the result for a reference.
type answer int

const (
	known   answer = iota // the reference has a value
	unknown               // the provider must fill the value
	absent                // the reference is optional, and its object does not exist
)

func (r *resolver) valueFrom(ctx context.Context, c *corev1.Container, from *corev1.EnvVarSource, path *field.Path) (string, answer, error) {
	switch {
	case from.FieldRef != nil:
		return r.fieldValue(from.FieldRef, path.Child("fieldRef"))
	case from.ResourceFieldRef != nil:
		return r.resourceValue(c, from.ResourceFieldRef, path.Child("resourceFieldRef"))
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		return r.keyValue(ctx, c.Name, sourceKey{configMap, ref.Name}, ref.Key, ref.Optional)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		return r.keyValue(ctx, c.Name, sourceKey{secret, ref.Name}, ref.Key, ref.Optional)
	case from.FileKeyRef != nil:
		return "", absent, errdefs.InvalidInputf("%s: variables from files are not supported by this node: "+
			"only a provider that runs the containers itself can read them; use a ConfigMap or a Secret", path.Child("fileKeyRef"))
	default:
		return "", absent, errdefs.InvalidInputf("%s: this source of a variable is not supported by this node", path)
	}
}
