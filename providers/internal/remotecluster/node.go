// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/nodehealth"
)

// errLoop is the error if the remote cluster is the home cluster.
var errLoop = errors.New("the remote cluster is the home cluster: give the node the kubeconfig of another one")

// isNotHome returns an error if the remote cluster is the home cluster, where pods would be copied endlessly. It
// compares the UIDs of the Services default/kubernetes. If either cannot be read, it returns nil.
func (c *Cluster) isNotHome(ctx context.Context) error {
	c.mu.Lock()
	known := c.notLoop
	c.mu.Unlock()
	home, knowsHome := c.homeUID()
	if known || !knowsHome {
		return nil
	}
	remote, err := c.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, serviceOfAPI, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err): // a compatible API without this Service
	case err != nil:
		return fmt.Errorf("ask the remote cluster who it is: %w", err)
	case remote.UID == home:
		return errLoop
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notLoop = true
	return nil
}

// Ping returns an error if the remote cluster does not answer, forbids access or lists, is the home cluster, or
// has no Ready node, or if another home cluster has the name.
func (c *Cluster) Ping(ctx context.Context) error {
	if err := c.checkAnswers(ctx); err != nil {
		return err
	}
	if err := c.isNotHome(ctx); err != nil {
		return err
	}
	if err := c.awaitList(ctx); err != nil {
		return err
	}
	if err := c.cache.failures.Check(ctx, c.cache.listKind); err != nil {
		return fmt.Errorf("see what changes in the remote cluster: %w", err)
	}
	if err := c.claim.checkClaim(ctx, false); err != nil {
		return err
	}
	if c.nodes != nil {
		cache.WaitForCacheSync(ctx.Done(), c.nodes.hasSynced) // without the sync the capacity is unknown, and checkRoom reports the reason
		return c.nodes.checkRoom(ctx)
	}
	return nil
}

// checkAnswers returns an error if the remote API server is not ready. It does not retry: a response that asks
// for a later retry is sufficient.
func (c *Cluster) checkAnswers(ctx context.Context) error {
	if c.config.Answers != nil {
		if err := c.config.Answers(ctx); err != nil {
			return fmt.Errorf("remote cluster: %w", err)
		}
		return nil
	}
	var code int
	result := c.client.Discovery().RESTClient().Get().AbsPath("/readyz").MaxRetries(0).Do(ctx).StatusCode(&code)
	switch err := result.Error(); {
	case err == nil:
		return nil
	case code == 0: // no response
		return fmt.Errorf("remote cluster: %w", err)
	default:
		return fmt.Errorf("remote cluster: it answers %d %s: %w", code, http.StatusText(code), err)
	}
}

// NotifyNodeStatus sets the function that gets changes of the node. It stores the node only now, because the
// server port and the declared features are set after ConfigureNode, and the first change must not drop them.
func (c *Cluster) NotifyNodeStatus(_ context.Context, notify func(*corev1.Node)) {
	c.mu.Lock()
	c.notifyNode, c.base = notify, c.node.DeepCopy()
	c.mu.Unlock()
	c.copies.checkAll() // the capacity may already be known
}

// ConfigureNode sets the resources of the remote cluster in n, and marks n as healthy. Ping detects when it is
// not.
func (c *Cluster) ConfigureNode(_ context.Context, n *corev1.Node) {
	nodehealth.Well(n, "RemoteCluster")
	c.setRoom(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.node = n
}
