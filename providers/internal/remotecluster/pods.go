// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// CreatePod creates the remote pod and the objects that it needs. It adopts an existing remote pod unchanged.
func (c *Cluster) CreatePod(ctx context.Context, home *corev1.Pod) error {
	if err := c.awaitReady(ctx); err != nil {
		return err
	}
	if err := c.isNotHome(ctx); err != nil {
		return err
	}
	if there := c.findUID(home.UID); there != nil {
		return c.adoptPod(home, there)
	}
	namespace, _ := c.namespaces.remoteName(home.Namespace)
	claims, err := c.remoteClaims(ctx, home, namespace)
	if err != nil {
		return err
	}
	tr, err := c.translatePod(home, namesOf(claims))
	if err != nil {
		return err
	}
	if err := c.addServices(ctx, home, tr); err != nil {
		return err
	}
	if err := c.namespaces.ensureNamespace(ctx, home.Namespace); err != nil {
		return withDelay(err)
	}
	if err := c.putClaims(ctx, claims); err != nil {
		c.namespaces.recordFailure(home.Namespace, err)
		return createKind(err)
	}
	release := c.copies.holdObjects(namedObjects(tr.Pod))
	defer release()
	n := tr.podNeed(home)
	if err := c.copies.putObjects(ctx, home, n, nil); err != nil {
		c.namespaces.recordFailure(home.Namespace, err)
		return createKind(err)
	}
	c.setBorn(home.UID, true)
	made, err := c.createPod(ctx, home, tr.Pod)
	if err != nil && (apierrors.IsAlreadyExists(err) || !noAnswer(err)) {
		c.setBorn(home.UID, false)
	}
	if apierrors.IsAlreadyExists(err) {
		made, err = c.writer.get(ctx, tr.Pod.Namespace, tr.Pod.Name)
		if err == nil {
			err = c.adoptPod(home, made)
		}
	}
	if err != nil {
		if noAnswer(err) { // the pod may have been created
			c.mu.Lock()
			c.perhaps[home.UID] = madePod{tr.Pod, time.Now()}
			c.mu.Unlock()
		}
		c.namespaces.recordFailure(home.Namespace, err)
		return createKind(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.perhaps, home.UID)
	n.there = made.UID
	c.tracked[home.UID], c.needs[home.UID] = nameOf(home), n
	if len(c.cache.findPods(byUID, string(home.UID))) == 0 {
		c.made[home.UID] = madePod{made, time.Now()}
	}
	return nil
}

// setBorn records whether this process has created a remote pod, or may have.
func (c *Cluster) setBorn(uid types.UID, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is {
		c.born[uid] = true
	} else {
		delete(c.born, uid)
	}
}

// adoptPod adopts an existing remote pod, if it belongs to the home pod.
func (c *Cluster) adoptPod(home, there *corev1.Pod) error {
	_, uid := homeOf(there)
	switch {
	case uid != home.UID || !c.config.Home.ownsObject(there):
		return fmt.Errorf("pod %s in the remote cluster is not this pod", podKey(there))
	case c.isLeaving(there):
		return fmt.Errorf("pod %s is being deleted in the remote cluster", podKey(there))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tracked[home.UID] = nameOf(home)
	return nil
}

// createPod creates the remote pod. In a new namespace it waits for the service account, which pods need for
// admission.
func (c *Cluster) createPod(ctx context.Context, home, pod *corev1.Pod) (*corev1.Pod, error) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		made, err := c.writer.create(ctx, pod)
		if !apierrors.IsForbidden(err) || !c.namespaces.isYoung(home.Namespace) {
			return made, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// translatePod returns the remote form of a pod, without service environment variables. claims are the remote
// names of its claims.
func (c *Cluster) translatePod(home *corev1.Pod, claims map[string]string) (*Translation, error) {
	var place Placement
	if c.config.Place != nil {
		var err error
		if place, err = c.config.Place(home); err != nil {
			return nil, err
		}
	}
	tr, err := c.translateTo(home, claims, place)
	if err == nil {
		err = c.adjustPod(home, tr)
	}
	return tr, err
}

// Check returns an error for pods that CreatePod would refuse because of their content.
func (c Config) Check(home *corev1.Pod) error {
	t := Target{Home: c.Home, Namespace: cmp.Or(c.Namespace, home.Namespace), Labels: c.Labels, ServiceAccount: c.ServiceAccount, Annotations: c.Annotations}
	if c.Place != nil {
		var err error
		if t.Place, err = c.Place(home); err != nil {
			return err
		}
	}
	if len(c.StorageClasses) > 0 { // the storage classes of claims are not in the pod
		t.Claims = map[string]string{}
		for i := range home.Spec.Volumes {
			t.Claims[home.Spec.Volumes[i].Name] = "unread"
		}
	}
	tr, err := Translate(home, t)
	if err != nil || c.Adjust == nil {
		return err
	}
	return c.Adjust(home, tr.Pod)
}

// adjustPod applies Config.Adjust to a remote pod.
func (c *Cluster) adjustPod(home *corev1.Pod, tr *Translation) error {
	if c.config.Adjust == nil {
		return nil
	}
	return c.config.Adjust(home, tr.Pod)
}

// translateThere translates a pod whose remote pod exists. It leaves out the placement and Config.Adjust, which
// might refuse a pod that already runs.
func (c *Cluster) translateThere(home, there *corev1.Pod) (*Translation, error) {
	return c.translateTo(home, claimsIn(there), Placement{})
}

func (c *Cluster) translateTo(home *corev1.Pod, claims map[string]string, place Placement) (*Translation, error) {
	namespace, _ := c.namespaces.remoteName(home.Namespace)
	if there := c.findUID(home.UID); there != nil { // an existing pod stays in its namespace
		namespace = there.Namespace
	}
	t := Target{
		Home: c.config.Home, Namespace: namespace, Labels: c.config.Labels, ServiceAccount: c.config.ServiceAccount, Annotations: c.config.Annotations,
		Claims: claims, Place: place,
	}
	if known := c.homePod(home.Namespace, home.Name); known != nil && known.UID == home.UID {
		t.Restarts = restartsOf(&known.Status)
	}
	if c.claim.byPods() {
		t.Maker, _ = c.homeUID()
	}
	return Translate(home, t)
}

// UpdatePod updates changed labels, annotations and images of the remote pod.
func (c *Cluster) UpdatePod(ctx context.Context, home *corev1.Pod) error {
	if err := c.awaitReady(ctx); err != nil {
		return err
	}
	there := c.findUID(home.UID)
	if there == nil {
		return errdefs.NotFoundf("the remote cluster has no pod with the UID %s", home.UID)
	}
	c.mu.Lock()
	c.tracked[home.UID] = nameOf(home)
	c.mu.Unlock()
	tr, err := c.translateThere(home, there)
	if err != nil {
		return err
	}
	if !isTerminal(there.Status.Phase) && there.DeletionTimestamp == nil {
		if err := c.copies.putObjects(ctx, home, tr.podNeed(home), nil); err != nil {
			return withDelay(err)
		}
	}
	if err := c.adjustPod(home, tr); err != nil {
		return err
	}
	if c.remakesPods() {
		return classifyError(c.owners.changeOwner(ctx, there, tr.Pod))
	}
	patch, err := patchOf(there, tr.Pod)
	if err == nil && patch != nil && isOwner(there) {
		return fmt.Errorf("it is changed when the remote cluster has made it of the %s %s", there.Kind, podKey(there))
	}
	if err == nil && patch != nil {
		_, err = c.client.CoreV1().Pods(there.Namespace).Patch(ctx, there.Name, patchType, patch, metav1.PatchOptions{})
	}
	return classifyError(err)
}

// DeletePod requests the graceful deletion of the remote pod. The pod is gone when the watch reports it.
func (c *Cluster) DeletePod(ctx context.Context, home *corev1.Pod) error {
	if err := c.awaitList(ctx); err != nil {
		return err
	}
	if known := c.homePod(home.Namespace, home.Name); known == nil || known.UID != home.UID { // the pod may belong to another home
		if err := c.awaitReady(ctx); err != nil {
			return err
		}
	}
	there := c.findUID(home.UID) // the UID identifies the pod of this home, whatever its name
	if there == nil {            // the watch may be late
		if err := c.awaitReady(ctx); err != nil {
			return err
		}
		namespace, _ := c.namespaces.remoteName(home.Namespace)
		if namespace == "" { // without a namespace there is no pod
			return c.namespaces.ensureNamespace(ctx, home.Namespace)
		}
		var err error
		there, err = c.writer.get(ctx, namespace, c.config.Home.PodName(home))
		if err != nil {
			return classifyError(err)
		}
		if _, uid := homeOf(there); uid != home.UID || !c.config.Home.ownsObject(there) {
			return errdefs.NotFoundf("pod %s in the remote cluster is not this pod", podKey(there))
		}
	}
	c.mu.Lock()
	c.stopping[home.UID] = true
	c.mu.Unlock()
	err := c.writer.remove(ctx, there, graceOf(home))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		c.notMade(there)
	}
	if apierrors.IsConflict(err) { // a conflict means another UID: this pod is gone
		return errdefs.AsNotFound(err)
	}
	return classifyError(err)
}

// graceOf returns the grace period of a deleted pod, at least 1 second. With 0, the API server would remove the
// pod before its containers have stopped.
func graceOf(home *corev1.Pod) int64 {
	return max(int64(podspec.Grace(home)/time.Second), 1)
}
