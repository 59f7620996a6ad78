// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errLoop is the error of a remote cluster that is home.
var errLoop = errors.New("the remote cluster is the home cluster: give the node the kubeconfig of another one")

// isNotHome refuses a remote cluster that is home: its pods would be made again for ever. The Service kubernetes tells, which every
// cluster has. Where one of both cannot be read nothing is known, and nothing refused.
func (c *Cluster) isNotHome(ctx context.Context) error {
	c.mu.Lock()
	known := c.notLoop
	c.mu.Unlock()
	if known || c.config.Services == nil {
		return nil
	}
	const namespace, name = metav1.NamespaceDefault, "kubernetes"
	home, err := c.config.Services.Services(namespace).Get(name)
	if err != nil {
		return nil
	}
	remote, err := c.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err): // a compatible API that has none
	case err != nil:
		return fmt.Errorf("ask the remote cluster who it is: %w", err)
	case remote.UID == home.UID:
		return errLoop
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notLoop = true
	return nil
}

// Ping fails when the remote cluster does not answer, may not be used, is home, or has nodes of which none is Ready.
func (c *Cluster) Ping(ctx context.Context) error {
	if _, err := c.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return fmt.Errorf("remote cluster: %w", err)
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	if err := c.isNotHome(ctx); err != nil {
		return err
	}
	if c.nodes != nil {
		return c.nodes.trouble()
	}
	return nil
}

// NotifyNodeStatus takes what changes of the node are told to.
func (c *Cluster) NotifyNodeStatus(_ context.Context, notify func(*corev1.Node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notifyNode = notify
}

// ConfigureNode writes what the node offers into n, and that it is well: Ping says when it is not.
func (c *Cluster) ConfigureNode(_ context.Context, n *corev1.Node) {
	now := metav1.Now()
	n.Status.Conditions = nil
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable} {
		condition := corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: "RemoteCluster", LastHeartbeatTime: now, LastTransitionTime: now}
		if kind == corev1.NodeReady {
			condition.Status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions, condition)
	}
	c.setRoom(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = n.DeepCopy()
}
