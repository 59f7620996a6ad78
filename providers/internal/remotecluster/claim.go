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

// claimAgain is the time after which a refused claim is checked again.
const claimAgain = 10 * time.Second

// claim reserves the name of the home cluster in the remote cluster, for all its nodes. It identifies the home
// cluster by the UID of its Service default/kubernetes. It is created once: as a namespace of its own, or as a
// ConfigMap if all pods are in one namespace. If other components create the namespaces, each pod has the UID of
// its home cluster as an annotation instead.
type claim struct {
	of      *Cluster
	doubted atomic.Bool // the claim in the remote cluster may have been lost

	mu    sync.Mutex // held during requests to the remote cluster
	held  bool       // guarded by mu; this home cluster has the name
	err   error      // guarded by mu; why the claim is not held
	asked time.Time  // guarded by mu; the time of err

	unseen time.Time // guarded by mu; when reading the claim was last forbidden
}

// errNoClaim is the error if no home cluster has the name.
var errNoClaim = errors.New("not claimed")

// checkClaim returns an error if another home cluster has the name: the pods of both could not be distinguished.
// With take, checkClaim claims an unclaimed name. It returns nil if the UID of the home cluster is unknown, or if
// reading the claim is forbidden.
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
		if err = c.writeClaim(ctx, home); apierrors.IsAlreadyExists(err) { // another node has just claimed it
			has, at, err = c.readClaim(ctx)
		} else {
			has = home
		}
	}
	switch {
	case apierrors.IsForbidden(err): // the permission may be granted later
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

// byPods reports whether annotations of pods replace the claim. If other components create the namespaces, there
// is no place for a claim, and no permission to create one.
func (c *claim) byPods() bool { return c.of.config.Claim && c.of.config.NamespaceOf != nil }

// checkPods returns an error if another home cluster has created remote pods for this cluster name and node. A
// remote pod with the UID of a pod in this home cluster belongs to it: then only its Service was recreated.
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

// readClaim returns the UID of the home cluster that has the name, and the object with the claim.
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
	list, err := c.of.client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name}) // needs no other permission
	if err != nil {
		return "", "", err
	}
	i := slices.IndexFunc(list.Items, func(m corev1.ConfigMap) bool { return m.Name == name }) // a compatible API may ignore selectors
	if i < 0 {
		return "", "", errNoClaim
	}
	return types.UID(list.Items[i].Annotations[annotationHome]), "ConfigMap " + namespace + "/" + name, nil
}

// writeClaim claims the name.
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

// hasPodsOfHome reports whether a remote pod has the UID of a pod in the home cluster. No other cluster has that
// UID, so only the Service of this home cluster was recreated.
func (c *Cluster) hasPodsOfHome() bool {
	for _, remote := range c.cache.allPods() {
		at, uid := homeOf(remote)
		if home := c.homePod(at.Namespace, at.Name); home != nil && home.UID == uid {
			return true
		}
	}
	return false
}
