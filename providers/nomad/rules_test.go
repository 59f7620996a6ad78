// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"strings"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// TestPublishedC50RulesOfNomad maps a pod for each of Nomad's rules that relate values to each other. The
// numbers are issues of hashicorp/nomad.
func TestPublishedC50RulesOfNomad(t *testing.T) {
	limits := func(pod *corev1.Pod, name corev1.ResourceName, value string) {
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{name: resource.MustParse(value)}}
	}
	ports := func(pod *corev1.Pod, list ...corev1.ContainerPort) { pod.Spec.Containers[0].Ports = list }
	first := func(g *nomadapi.TaskGroup) *nomadapi.Resources { return g.Tasks[len(g.Tasks)-1].Resources }
	for _, rule := range []struct {
		name   string
		issue  string
		date   string
		change func(pod *corev1.Pod)
		path   string                           // the field that refuses the pod
		kept   func(g *nomadapi.TaskGroup) bool // nil: the pod is refused
	}{
		{"a task asks for 1 MHz at least", "#306, #3709", "2015-10-19, 2018-01-03", func(pod *corev1.Pod) { limits(pod, corev1.ResourceCPU, "0") }, "",
			func(g *nomadapi.TaskGroup) bool { return *first(g).CPU >= 1 }},
		{"a task asks for 10 MB at least", "#3520, #3596, Roblox/nomad-driver-containerd#44", "2017-11-07, 2017-11-29, 2020-09-25", func(pod *corev1.Pod) { limits(pod, corev1.ResourceMemory, "1Mi") }, "",
			func(g *nomadapi.TaskGroup) bool { return *first(g).MemoryMB >= 10 }},
		{"memory_max is above memory", "#10247", "2021-03-26", func(pod *corev1.Pod) { limits(pod, corev1.ResourceMemory, "1Mi") }, "",
			func(g *nomadapi.TaskGroup) bool {
				most := first(g).MemoryMaxMB
				return most == nil || *most > *first(g).MemoryMB
			}},
		{"restarts with their delays fit into the interval", "#423", "2015-11-16", func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyAlways }, "",
			func(g *nomadapi.TaskGroup) bool {
				r := g.Tasks[len(g.Tasks)-1].RestartPolicy
				return time.Duration(*r.Attempts)*(*r.Delay) <= *r.Interval
			}},
		{"restarts of none are of the mode fail", "#423", "2015-11-16", func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyNever }, "",
			func(g *nomadapi.TaskGroup) bool {
				r := g.Tasks[len(g.Tasks)-1].RestartPolicy
				return *r.Attempts == 0 && *r.Mode == "fail"
			}},
		{"max_parallel is no more than the count", "#2819", "2017-07-10", func(*corev1.Pod) {}, "",
			func(g *nomadapi.TaskGroup) bool {
				return g.Update == nil || g.Update.MaxParallel == nil || *g.Update.MaxParallel <= *g.Count
			}},
		{"a static port is reserved once", "#2807, #9477, #9946", "2017-07-07, 2020-12-01, 2021-02-02", func(pod *corev1.Pod) {
			ports(pod, corev1.ContainerPort{ContainerPort: 53, HostPort: 53, Protocol: corev1.ProtocolTCP}, corev1.ContainerPort{ContainerPort: 53, HostPort: 53, Protocol: corev1.ProtocolUDP})
		}, "", func(g *nomadapi.TaskGroup) bool {
			return len(g.Networks) == 1 && len(g.Networks[0].ReservedPorts) == 1 && g.Networks[0].ReservedPorts[0].To == 53
		}},
		{"a static port leads to one port", "#2807, #9477, #9946", "2017-07-07, 2020-12-01, 2021-02-02", func(pod *corev1.Pod) {
			ports(pod, corev1.ContainerPort{ContainerPort: 53, HostPort: 53, Protocol: corev1.ProtocolTCP}, corev1.ContainerPort{ContainerPort: 5353, HostPort: 53, Protocol: corev1.ProtocolUDP})
		}, "spec.containers[0].ports[1].containerPort", nil},
		{"devices are 1 at least", "hashicorp/nomad: scheduler/device.go, invalid request of zero devices", "", func(pod *corev1.Pod) { limits(pod, "nvidia.com/gpu", "0") }, "",
			func(g *nomadapi.TaskGroup) bool { return len(first(g).Devices) == 0 }},
	} {
		t.Run(rule.name, func(t *testing.T) {
			pod := shellPod("c", DriverExec, "true")
			rule.change(pod)
			r, err := mapping{config: testConfig(t, func(c *Config) { c.Network = NetworkBridge }), owner: testOwner}.job(testInputs(pod), 2400)
			switch {
			case rule.kept == nil && (!errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), rule.path+":")):
				t.Errorf("%s: got %v, want an error of the kind invalid-input at %s", rule.issue, err, rule.path)
			case rule.kept != nil && err != nil:
				t.Errorf("%s: %v", rule.issue, err)
			case rule.kept != nil && !rule.kept(r.job.TaskGroups[0]):
				t.Errorf("%s is not kept: %+v", rule.issue, r.job.TaskGroups[0])
			}
		})
	}
}
