// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SharedNetwork is the type of a node condition: pods are in the host network, and reach everything that the
// machine reaches.
const SharedNetwork corev1.NodeConditionType = "SharedNetwork"

// sharedNetwork returns the SharedNetwork condition, with the reason.
func (r *Runtime) sharedNetwork(now time.Time) corev1.NodeCondition {
	at := metav1.NewTime(now)
	c := corev1.NodeCondition{Type: SharedNetwork, LastHeartbeatTime: at, LastTransitionTime: at}
	if r.network != nil {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "OwnNetwork", "each pod has a network of its own"
		return c
	}
	c.Status, c.Reason = corev1.ConditionTrue, "PodNetworkHost"
	c.Message = "pods are in the network of the machine, and reach all that the machine reaches, its own servers too: podNetwork is " + PodNetworkHost
	if r.config.PodNetwork == "" {
		c.Reason = "NoPodNetwork"
		c.Message = "pods are in the network of the machine, and reach all that the machine reaches, its own servers too: isolation " + r.Isolation() + " gives them none of their own here"
	}
	return c
}

// tellSharedNetwork records an event of the node if pods are in the host network.
func (p *provider) tellSharedNetwork() {
	if c := p.runtime.sharedNetwork(time.Now()); c.Status == corev1.ConditionTrue && p.in.Recorder != nil {
		node := &corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: p.in.Node.Name, UID: types.UID(p.in.Node.Name)}
		p.in.Recorder.Event(node, corev1.EventTypeWarning, string(SharedNetwork), c.Message)
	}
}
