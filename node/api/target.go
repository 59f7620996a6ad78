// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/mux"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// target is the pod or container of a request. UID and Container are empty if the route has no such variable.
type target struct {
	Namespace, Pod, UID, Container string
}

// pathValue returns a variable of the route: of gorilla/mux, else of http.ServeMux, so that programs can use either router.
func pathValue(req *http.Request, name string) string {
	if v, ok := mux.Vars(req)[name]; ok {
		return v
	}
	return req.PathValue(name)
}

// podTarget reads and validates the namespace, the pod and the UID of the route.
func podTarget(req *http.Request) (target, error) {
	t := target{
		Namespace: pathValue(req, "namespace"),
		Pod:       pathValue(req, "pod"),
		UID:       pathValue(req, "uid"),
	}
	if msgs := validation.IsDNS1123Label(t.Namespace); len(msgs) > 0 {
		return target{}, errdefs.InvalidInputf("namespace %.80q is no valid name: %s", t.Namespace, strings.Join(msgs, "; "))
	}
	if msgs := validation.IsDNS1123Subdomain(t.Pod); len(msgs) > 0 {
		return target{}, errdefs.InvalidInputf("pod %.80q is no valid name: %s", t.Pod, strings.Join(msgs, "; "))
	}
	return t, nil
}

// containerTarget is podTarget for a route with a container.
func containerTarget(req *http.Request) (target, error) {
	t, err := podTarget(req)
	if err != nil {
		return target{}, err
	}
	t.Container = pathValue(req, "container")
	if msgs := validation.IsDNS1123Label(t.Container); len(msgs) > 0 {
		return target{}, errdefs.InvalidInputf("container %.80q is no valid name: %s", t.Container, strings.Join(msgs, "; "))
	}
	return t, nil
}

func (t target) String() string {
	if t.Container == "" {
		return "pod " + t.Namespace + "/" + t.Pod
	}
	return "container " + t.Container + " of pod " + t.Namespace + "/" + t.Pod
}

// getPodFunc looks up a pod of this node.
type getPodFunc func(namespace, name string) (*corev1.Pod, error)

// requirePod returns a handler that calls next only if the target exists on this node: the pod, with the UID if the route has a UID, and
// the container if the route has a container. With a nil get it passes every request on.
func requirePod(get getPodFunc, read func(*http.Request) (target, error), next http.HandlerFunc) http.HandlerFunc {
	if get == nil {
		return next
	}
	return func(w http.ResponseWriter, req *http.Request) {
		exists, uid := false, ""
		answerErrors(func(http.ResponseWriter, *http.Request) error {
			t, err := read(req)
			if err != nil {
				return err
			}
			uid, err = t.existsIn(get)
			exists = err == nil
			return err
		})(w, req)
		if exists {
			next(w, req.WithContext(withPodUID(req.Context(), uid)))
		}
	}
}

// existsIn returns the UID of the pod, or an error if the target does not exist.
func (t target) existsIn(get getPodFunc) (string, error) {
	pod, err := get(t.Namespace, t.Pod)
	switch {
	case err != nil && !errdefs.IsNotFound(err) && !apierrors.IsNotFound(err):
		return "", fmt.Errorf("look up %s: %w", t, err)
	case err != nil || pod == nil:
		return "", errdefs.NotFoundf("pod %s/%s is not on this node", t.Namespace, t.Pod)
	case t.UID != "" && t.UID != string(pod.UID):
		return "", errdefs.NotFoundf("pod %s/%s with UID %.80q is not on this node", t.Namespace, t.Pod, t.UID)
	case t.Container != "" && !hasContainer(pod, t.Container):
		return "", errdefs.NotFoundf("pod %s/%s has no container %s", t.Namespace, t.Pod, t.Container)
	}
	return string(pod.UID), nil
}

func hasContainer(pod *corev1.Pod, name string) bool {
	named := func(c corev1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(pod.Spec.Containers, named) ||
		slices.ContainsFunc(pod.Spec.InitContainers, named) ||
		slices.ContainsFunc(pod.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == name })
}

type podUIDKey struct{}

// withPodUID adds the UID of the found pod to the context, for streamRecord.
func withPodUID(ctx context.Context, uid string) context.Context {
	return context.WithValue(ctx, podUIDKey{}, uid)
}

func podUIDFrom(ctx context.Context) string {
	uid, _ := ctx.Value(podUIDKey{}).(string)
	return uid
}
