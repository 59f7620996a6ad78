// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// claimAgain is the life of the answer that another home cluster has the name.
const claimAgain = 10 * time.Second

// claim reserves the name of the home cluster in the remote cluster, for all its nodes. It identifies the home
// cluster by the UID of its Service kubernetes. It is written once: in a namespace of its own, or in a ConfigMap
// if all pods go to one namespace. If others make the namespaces, each pod names its home cluster instead.
type claim struct {
	of      *Cluster
	doubted atomic.Bool // the claim in the remote cluster may have been lost

	mu    sync.Mutex // held while the remote cluster is asked
	held  bool       // guarded by mu; the name is this home's
	err   error      // guarded by mu; why the claim is not held
	asked time.Time  // guarded by mu; when err was found

	unseen time.Time // guarded by mu; when the right to read the claim was missing
}

// errNoClaim is the error if no home cluster has the name.
var errNoClaim = errors.New("not claimed")

// checkClaim returns an error if another home cluster has the name: its pods would be taken for the pods of this
// cluster. With take, checkClaim claims a name without an owner. If the UID of home or the claim cannot be read,
// nothing is known, and checkClaim refuses nothing.
func (c *claim) checkClaim(ctx context.Context, take bool) error {
	if !c.of.config.Claim {
		return nil
	}
	home, known := c.of.homeUID()
	if !known {
		return nil
	}
	if c.byPods() {
		return c.checkPods(home)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doubted.Swap(false) {
		c.held = false
	}
	switch {
	case c.held:
		return nil
	case c.err != nil && time.Since(c.asked) < claimAgain:
		return c.err
	case time.Since(c.unseen) < claimAgain:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	has, at, err := c.readClaim(ctx)
	if errors.Is(err, errNoClaim) {
		if !take {
			return nil
		}
		if err := c.of.isNotHome(ctx); err != nil {
			return err
		}
		if err = c.writeClaim(ctx, home); apierrors.IsAlreadyExists(err) { // another node was faster
			has, at, err = c.readClaim(ctx)
		} else {
			has = home
		}
	}
	switch {
	case apierrors.IsForbidden(err): // the right may be granted later
		if c.unseen.IsZero() {
			log.G(ctx).WithError(err).Warn("Nobody sees whether another cluster of this clusterName uses the remote cluster")
		}
		c.unseen = time.Now()
		return nil
	case err != nil:
		return fmt.Errorf("claim the name %s in the remote cluster: %w", c.of.config.Home.Cluster, err)
	case has != home && c.of.hasPodsOfHome():
		log.G(ctx).WithField("claim", at).Warn("The claim in the remote cluster has another UID than the Service default/kubernetes has now; pods there are this cluster's, so it is, too")
	case has != home:
		c.asked = time.Now()
		c.err = fmt.Errorf("another home cluster has the name %s in the remote cluster, as %s there says: give this one another name, or delete that if its cluster is no more, or if the Service default/kubernetes of this one was made anew",
			c.of.config.Home.Cluster, at)
		return c.err
	}
	c.held, c.err = true, nil
	return nil
}

// byPods reports whether pods name their home cluster. If others make the namespaces, there is no place for a
// claim, and no right to make one.
func (c *claim) byPods() bool { return c.of.config.Claim && c.of.config.NamespaceOf != nil }

// checkPods fails if another home cluster made a remote pod of this name and node. A remote pod with the UID of
// a pod at home belongs to this home, whose Service was recreated.
func (c *claim) checkPods(home types.UID) error {
	for _, maker := range c.of.cache.podMakers() {
		if maker == "" || maker == string(home) {
			continue
		}
		for _, remote := range c.of.cache.findPods(byMaker, maker) {
			at, uid := homeOf(remote)
			if has := c.of.homePod(at.Namespace, at.Name); has == nil || has.UID != uid {
				return fmt.Errorf("another home cluster has the name %s in the remote cluster, and made pod %s there: give this one, or its node, another name, or delete that pod if its cluster is no more",
					c.of.config.Home.Cluster, podKey(remote))
			}
		}
	}
	return nil
}

// readClaim returns the home cluster with the name, and the place of the claim.
func (c *claim) readClaim(ctx context.Context) (uid types.UID, at string, err error) {
	name, namespace := c.of.config.Home.claimName(), c.of.config.Namespace
	if namespace == "" {
		ns, err := c.of.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return "", "", errNoClaim
		case err == nil && ns.DeletionTimestamp != nil:
			return "", "", fmt.Errorf("namespace %s is being deleted", name)
		case err != nil:
			return "", "", err
		}
		return types.UID(ns.Annotations[annotationHome]), "namespace " + name, nil
	}
	list, err := c.of.client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name}) // no right more
	if err != nil {
		return "", "", err
	}
	i := slices.IndexFunc(list.Items, func(m corev1.ConfigMap) bool { return m.Name == name }) // a compatible API may leave selectors out
	if i < 0 {
		return "", "", errNoClaim
	}
	return types.UID(list.Items[i].Annotations[annotationHome]), "ConfigMap " + namespace + "/" + name, nil
}

// writeClaim takes the name.
func (c *claim) writeClaim(ctx context.Context, home types.UID) error {
	meta := metav1.ObjectMeta{
		Name: c.of.config.Home.claimName(), Labels: map[string]string{LabelCluster: labelValue(c.of.config.Home.Cluster)},
		Annotations: map[string]string{annotationHome: string(home)},
	}
	var err error
	if namespace := c.of.config.Namespace; namespace == "" {
		_, err = c.of.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	} else {
		_, err = c.of.client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
	}
	return err
}

// hasPodsOfHome reports whether a remote pod has the UID of a pod at home. No other home has that UID, so the
// Service of this home was recreated.
func (c *Cluster) hasPodsOfHome() bool {
	for _, remote := range c.cache.allPods() {
		at, uid := homeOf(remote)
		if home := c.homePod(at.Namespace, at.Name); home != nil && home.UID == uid {
			return true
		}
	}
	return false
}
