// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// makes changes pods before they are created.
func makes(change func(*corev1.Pod)) func(*calls) {
	return func(c *calls) {
		c.create = func(ctx context.Context, pod *corev1.Pod) error {
			change(pod)
			return c.Provider.CreatePod(ctx, pod)
		}
	}
}

// shows changes the pods that GetPod returns.
func shows(change func(*corev1.Pod)) func(*calls) {
	return func(c *calls) {
		c.get = func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
			pod, err := c.Provider.GetPod(ctx, namespace, name)
			if err == nil {
				change(pod)
			}
			return pod, err
		}
	}
}

// unstartable lists the checks of containers that cannot start.
var unstartable = []string{"starts/not-found", "starts/not-executable", "starts/directory"}

func podDefects() []defect {
	main := func(pod *corev1.Pod) *corev1.Container { return &pod.Spec.Containers[0] }
	ended := func(pod *corev1.Pod) *corev1.ContainerStateTerminated {
		if s := pod.Status.ContainerStatuses; len(s) > 0 {
			return s[0].State.Terminated
		}
		return nil
	}
	return []defect{
		{name: "variables of one container for all", caught: "environment/own", wrap: breaks(makes(func(pod *corev1.Pod) {
			for i := range pod.Spec.Containers {
				pod.Spec.Containers[i].Env = main(pod).Env
			}
		}))},
		{name: "secrets that all can read", caught: "files/mode", wrap: breaks(makes(func(pod *corev1.Pod) {
			for _, v := range pod.Spec.Volumes {
				if v.Secret != nil {
					v.Secret.DefaultMode = nil
				}
			}
		}))},
		{name: "items that are ignored", caught: "files/items", wrap: breaks(makes(func(pod *corev1.Pod) {
			for _, v := range pod.Spec.Volumes {
				if v.ConfigMap != nil {
					v.ConfigMap.Items = nil
				}
			}
		}))},
		{name: "what succeeded is done again", caught: "restarts/on-failure-succeeds", wrap: breaks(makes(func(pod *corev1.Pod) {
			if pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
				pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			}
		}))},
		{name: "readiness probes that are ignored", caught: "probes/readiness", wrap: breaks(makes(func(pod *corev1.Pod) { main(pod).ReadinessProbe = nil }))},
		{name: "liveness probes that are ignored", caught: "probes/liveness", also: []string{"probes/liveness-ends"}, wrap: breaks(makes(func(pod *corev1.Pod) { main(pod).LivenessProbe = nil }))},
		{name: "startup probes that are ignored", caught: "probes/startup", wrap: breaks(makes(func(pod *corev1.Pod) { main(pod).StartupProbe = nil }))},
		{name: "hooks before the end that are ignored", caught: "hooks/pre-stop", wrap: breaks(makes(func(pod *corev1.Pod) {
			if l := main(pod).Lifecycle; l != nil {
				l.PreStop = nil
			}
		}))},
		{name: "hooks after the start that are ignored", caught: "hooks/post-start", wrap: breaks(makes(func(pod *corev1.Pod) {
			if l := main(pod).Lifecycle; l != nil {
				l.PostStart = nil
			}
		}))},
		{name: "termination messages that are lost", caught: "exits/message", wrap: breaks(shows(func(pod *corev1.Pod) {
			if end := ended(pod); end != nil {
				end.Message = ""
			}
		})), also: unstartable},
		{name: "ends without a reason", caught: "exits/reason", wrap: breaks(shows(func(pod *corev1.Pod) {
			if end := ended(pod); end != nil {
				end.Reason = ""
			}
		})), also: unstartable},
		{name: "pods that are ready after their end", caught: "exits/ready", wrap: breaks(shows(func(pod *corev1.Pod) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
		})), also: []string{"probes/readiness", "probes/startup"}},
		{name: "times that are those of the request", caught: "exits/times", wrap: breaks(shows(func(pod *corev1.Pod) {
			if end := ended(pod); end != nil {
				end.FinishedAt.Time = end.StartedAt.Add(-time.Second)
			}
		})), also: []string{}},
		{name: "a last state that is lost", caught: "restarts/always", wrap: breaks(shows(func(pod *corev1.Pod) {
			for i := range pod.Status.ContainerStatuses {
				pod.Status.ContainerStatuses[i].LastTerminationState = corev1.ContainerState{}
			}
		})), also: []string{"starts/backs-off"}},
		{name: "containers that cannot start and wait", caught: "starts/not-found", wrap: breaks(shows(func(pod *corev1.Pod) {
			if end := ended(pod); end != nil && end.Reason == "StartError" {
				pod.Status.Phase = corev1.PodPending
				pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "RunContainerError"}}
			}
		})), also: unstartable},
		{name: "a working directory that is waited for", caught: "starts/no-working-directory", wrap: breaks(shows(func(pod *corev1.Pod) {
			if main(pod).WorkingDir != "" {
				pod.Status.Phase = corev1.PodPending
			}
		}))},
		{name: "containers that cannot start and are never tried again", caught: "starts/backs-off", wrap: breaks(makes(func(pod *corev1.Pod) {
			if c := main(pod).Command; len(c) > 0 && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
				pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			}
		}))},
		{name: "storage that pods may request and the node does not offer", caught: "offers/requests", wrap: offers(func(l corev1.ResourceList) {
			delete(l, corev1.ResourceEphemeralStorage)
		})},
		{name: "a device that the node offers and no pod may ask for", caught: "offers/requests", wrap: offers(func(l corev1.ResourceList) {
			l["example.com/device"] = resource.MustParse("2")
		})},
	}
}

// offering is a provider whose node offers resources that its pods may not request.
type offering struct {
	*inprocess.Provider
	change func(corev1.ResourceList)
}

func (o offering) ConfigureNode(ctx context.Context, n *corev1.Node) {
	o.Provider.ConfigureNode(ctx, n)
	o.change(n.Status.Allocatable)
}

// TestCapacityIsWhatANodeOffers: a provider may set only the capacity, because the API server makes all of it allocatable.
func TestCapacityIsWhatANodeOffers(t *testing.T) {
	r := verify(t, inProcess(func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler { return capacityOnly{p} }))
	if failed := r.Failed(); len(failed) > 0 {
		t.Errorf("failed: %q", failed)
	}
}

// capacityOnly sets the capacity of its node, and no allocatable resources.
type capacityOnly struct{ *inprocess.Provider }

func (p capacityOnly) ConfigureNode(ctx context.Context, n *corev1.Node) {
	p.Provider.ConfigureNode(ctx, n)
	n.Status.Allocatable = nil
}

func offers(change func(corev1.ResourceList)) func(context.Context, *inprocess.Provider) node.PodLifecycleHandler {
	return func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler { return offering{p, change} }
}
