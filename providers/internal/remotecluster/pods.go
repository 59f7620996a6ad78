// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

func key(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// CreatePod makes the remote pod, and what it needs. One that is there is taken as it is.
func (c *Cluster) CreatePod(ctx context.Context, home *corev1.Pod) error {
	if err := c.create(ctx, home); err != nil {
		return fmt.Errorf("create pod %s: %w", key(home), err)
	}
	return nil
}

func (c *Cluster) create(ctx context.Context, home *corev1.Pod) error {
	if err := c.ready(ctx); err != nil {
		return err
	}
	if err := c.isNotHome(ctx); err != nil {
		return err
	}
	if there := c.findUID(home.UID); there != nil {
		return c.adopt(home, there)
	}
	tr, err := c.translate(ctx, home)
	if err != nil {
		return err
	}
	if err := c.addServices(ctx, home, tr); err != nil {
		return err
	}
	if err := c.namespaces.ensure(ctx, home.Namespace); err != nil {
		return later(err)
	}
	release := c.copies.hold(named(tr.Pod))
	defer release()
	if err := c.copies.put(ctx, home, tr); err != nil {
		c.namespaces.failed(home.Namespace, err)
		return createKind(err)
	}
	made, err := c.post(ctx, home, tr.Pod)
	if apierrors.IsAlreadyExists(err) {
		made, err = c.client.CoreV1().Pods(tr.Pod.Namespace).Get(ctx, tr.Pod.Name, metav1.GetOptions{})
		if err == nil {
			err = c.adopt(home, made)
		}
	}
	if err != nil {
		c.namespaces.failed(home.Namespace, err)
		return createKind(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tracked[home.UID] = home
	if len(c.cache.find(byUID, string(home.UID))) == 0 {
		c.made[home.UID] = madePod{made, time.Now()}
	}
	return nil
}

// adopt takes a remote pod that is there for that of a pod, if it is.
func (c *Cluster) adopt(home, there *corev1.Pod) error {
	_, uid := homeOf(there)
	switch {
	case uid != home.UID || !c.config.Home.owns(there):
		return fmt.Errorf("pod %s in the remote cluster is not this pod", key(there))
	case there.DeletionTimestamp != nil:
		return fmt.Errorf("pod %s is being deleted in the remote cluster", key(there))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tracked[home.UID] = home
	return nil
}

// post makes the remote pod. In a new namespace it waits for the service account, without which none is admitted.
func (c *Cluster) post(ctx context.Context, home, pod *corev1.Pod) (*corev1.Pod, error) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		made, err := c.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !c.namespaces.young(home.Namespace) {
			return made, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// translate returns what a pod is in the remote cluster, without the variables of services.
func (c *Cluster) translate(_ context.Context, home *corev1.Pod) (*Translation, error) {
	namespace, _ := c.namespaces.name(home.Namespace)
	t := Target{Home: c.config.Home, Namespace: namespace, ServiceAccount: c.config.ServiceAccount, Annotations: c.config.Annotations}
	if c.config.Place != nil {
		place, err := c.config.Place(home)
		if err != nil {
			return nil, err
		}
		t.Place = place
	}
	if known := c.homePod(home.Namespace, home.Name); known != nil && known.UID == home.UID {
		t.Restarts = restartsOf(&known.Status)
	}
	return Translate(home, t)
}

// homePod is a pod as home has it, nil if it does not.
func (c *Cluster) homePod(namespace, name string) *corev1.Pod {
	pod, err := c.config.Pods.Pods(namespace).Get(name)
	if err != nil {
		return nil
	}
	return pod
}

// UpdatePod changes labels, annotations and images of the remote pod, where they differ.
func (c *Cluster) UpdatePod(ctx context.Context, home *corev1.Pod) error {
	if err := c.ready(ctx); err != nil {
		return fmt.Errorf("update pod %s: %w", key(home), err)
	}
	there := c.findUID(home.UID)
	if there == nil {
		return errdefs.NotFoundf("update pod %s: the remote cluster has no pod with the UID %s", key(home), home.UID)
	}
	c.mu.Lock()
	c.tracked[home.UID] = home
	c.mu.Unlock()
	tr, err := c.translate(ctx, home)
	if err != nil {
		return fmt.Errorf("update pod %s: %w", key(home), err)
	}
	if !terminal(there.Status.Phase) && there.DeletionTimestamp == nil {
		if err := c.copies.put(ctx, home, tr); err != nil {
			return fmt.Errorf("update pod %s: %w", key(home), later(err))
		}
	}
	patch, err := patchOf(there, tr.Pod)
	if err == nil && patch != nil {
		_, err = c.client.CoreV1().Pods(there.Namespace).Patch(ctx, there.Name, patchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("update pod %s: %w", key(home), kind(err))
	}
	return nil
}

// DeletePod asks for the stop of the remote pod. It is gone when the remote cluster says so: never by force.
func (c *Cluster) DeletePod(ctx context.Context, home *corev1.Pod) error {
	if err := c.delete(ctx, home); err != nil {
		return fmt.Errorf("delete pod %s: %w", key(home), err)
	}
	return nil
}

func (c *Cluster) delete(ctx context.Context, home *corev1.Pod) error {
	if err := c.ready(ctx); err != nil {
		return err
	}
	there := c.findUID(home.UID)
	if there == nil { // the watch may be late
		namespace, _ := c.namespaces.name(home.Namespace)
		var err error
		there, err = c.client.CoreV1().Pods(namespace).Get(ctx, c.config.Home.PodName(home), metav1.GetOptions{})
		if err != nil {
			return kind(err)
		}
		if _, uid := homeOf(there); uid != home.UID || !c.config.Home.owns(there) {
			return errdefs.NotFoundf("pod %s in the remote cluster is not this pod", key(there))
		}
	}
	c.mu.Lock()
	c.stopping[home.UID] = true
	c.mu.Unlock()
	grace := graceOf(home)
	if there.DeletionTimestamp != nil && ptr.Deref(there.DeletionGracePeriodSeconds, 0) <= grace {
		return nil
	}
	options := exactly(there.UID)
	options.GracePeriodSeconds = &grace
	err := c.client.CoreV1().Pods(there.Namespace).Delete(ctx, there.Name, options)
	if apierrors.IsConflict(err) { // another UID: this one is gone
		return errdefs.AsNotFound(err)
	}
	return kind(err)
}

// graceOf is the grace period of a pod that is deleted. With 0 the API server would forget the pod before its containers have stopped.
func graceOf(home *corev1.Pod) int64 {
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	for _, seconds := range []*int64{home.Spec.TerminationGracePeriodSeconds, home.DeletionGracePeriodSeconds} {
		if seconds != nil {
			grace = *seconds
		}
	}
	return max(grace, 1)
}
