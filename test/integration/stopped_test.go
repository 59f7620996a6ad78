// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// nodeGrace is the time for which the controller manager waits for a renewal. Without a standby a node renews
// every 10 s.
const nodeGrace = 20 * time.Second

// TestPublishedB0StoppedNodeIsNotReady ends the processes of nodes in each way, on control planes with and without the gate
// NodeControllerLeaseCircuitBreaker (kubernetes/kubernetes: pkg/features/kube_features.go, on since 1.37). With the gate, the controller
// manager keeps waiting for a renewal if a lease has changed without one.
func TestPublishedB0StoppedNodeIsNotReady(t *testing.T) {
	t.Parallel()
	for _, gate := range []bool{true, false} {
		t.Run(fmt.Sprintf("NodeControllerLeaseCircuitBreaker=%v", gate), func(t *testing.T) {
			t.Parallel()
			api := testapi.New(t, testapi.Options{
				NoScheduler:           true,
				ControllerManagerArgs: []string{"--node-monitor-period=1s", "--node-monitor-grace-period=" + nodeGrace.String()},
				// All components run in one process, so they share the feature gates of the API server.
				APIServerArgs: []string{fmt.Sprintf("--feature-gates=NodeControllerLeaseCircuitBreaker=%v", gate)},
			})
			nodes := map[string]*world{}
			for _, name := range []string{"stopped", "killed", "killed with its standby", "handed over", "first of a group", "second of a group"} {
				nodes[name] = newWorldIn(t, api)
			}
			run := func(name string) *child {
				w := nodes[name]
				return w.runProgram("--nodename="+w.nodeName, "--provider=mock", "--kubeconfig="+api.KubeconfigPath, "--disable-kubelet-api")
			}
			stopped, killed := run("stopped"), run("killed")
			doomed, over := run("killed with its standby"), run("handed over")
			names := nodes["first of a group"].nodeName + "," + nodes["second of a group"].nodeName
			group := nodes["first of a group"].runProgram("--nodes="+names, "--share-nodes=g", "--provider=mock", "--kubeconfig="+api.KubeconfigPath, "--disable-kubelet-api")
			for _, w := range nodes {
				w.awaitNode("is ready", nodeReady)
				w.awaitWatched()
			}
			since := readySince(nodes["handed over"].awaitNode("is ready", nodeReady))
			doomedStandby, next := run("killed with its standby"), run("handed over")

			nodes["handed over"].awaitLease("is waited for", awaited)
			over.end()
			began := time.Now()
			stopped.end()
			group.end()
			killed.kill()
			nodes["killed with its standby"].awaitLease("is waited for", awaited)
			doomedStandby.kill()
			doomed.kill()
			ended := time.Now()
			for name, w := range nodes {
				if name == "handed over" {
					continue
				}
				dead := w.awaitNode("is not ready: "+name, func(node *corev1.Node) bool { return !nodeReady(node) })
				if c := readyCondition(dead); c.Status != corev1.ConditionUnknown || c.Reason != "NodeStatusUnknown" {
					t.Errorf("the node that was %s is %s (%s), want Unknown, as a kubelet's", name, c.Status, c.Reason)
				}
				t.Logf("%s: not ready %v after the first, %v after the last process had ended", name,
					readySince(dead).Sub(began).Round(time.Second), readySince(dead).Sub(ended).Round(time.Second))
			}
			// By now the control plane would also have noticed the missing renewals of the ended process.
			if now := readySince(nodes["handed over"].awaitNode("is ready", nodeReady)); !now.Equal(since) {
				t.Errorf("the node that was handed over is ready since %v, want since %v", now, since)
			}
			next.end()
			nodes["handed over"].awaitNode("is not ready", func(node *corev1.Node) bool { return !nodeReady(node) })
		})
	}
}

// awaited reports whether a process waits for the lease.
func awaited(l *coordinationv1.Lease) bool { return l.Annotations[lease.StandbyAnnotation] != "" }

// awaitWatched waits until the controller manager watches the node and its lease.
func (w *world) awaitWatched() {
	w.Helper()
	await(w.T, query{w.client().CoreV1().RESTClient(), "events", "", ""}, &corev1.Event{}, "the controller manager knows the node", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Name == w.nodeName && e.Reason == "RegisteredNode"
		})
	})
}

func readyCondition(node *corev1.Node) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// readySince returns the time when the node's condition Ready last changed.
func readySince(node *corev1.Node) time.Time { return readyCondition(node).LastTransitionTime.Time }
