// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// TestTask checks the content of a task.
func TestTask(t *testing.T) {
	d := &driver{owner: identity.Owner{Cluster: "home", Node: "vk-0"}, job: "vk-job"}
	d.config.Storage = Storage{"https://s.example/pods", "/id"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u-1"}, Spec: corev1.PodSpec{ActiveDeadlineSeconds: new(int64(60)), TerminationGracePeriodSeconds: new(int64(10))}}
	got, err := json.Marshal(d.taskContent(pod, "bin/program", 3))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"commandLine":"./virtual-kubelet virtual-kubelet-podjob run azurebatch","constraints":{"maxTaskRetryCount":0,"maxWallClockTime":"PT370S","retentionTime":"PT600S"},` +
		`"displayName":"virtual-kubelet/home/vk-0/ns/p","id":"vk-u-1","requiredSlots":3,"resourceFiles":[` +
		`{"fileMode":"0755","filePath":"virtual-kubelet","httpUrl":"https://s.example/pods/bin/program","identityReference":{"resourceId":"/id"}},` +
		`{"fileMode":"0600","filePath":"pod.json","httpUrl":"https://s.example/pods/vk-job/pods/u-1/pod.json","identityReference":{"resourceId":"/id"}}],` +
		`"userIdentity":{"autoUser":{"elevationLevel":"admin","scope":"pool"}}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := *d.taskContent(&corev1.Pod{}, "p", 1).Constraints.MaxWallClockTime; got != "PT15552000S" {
		t.Errorf("without a deadline it may be there for %s, want 180 days", got)
	}
}

// TestSlots: a pod takes slots of a machine for its larger share, and no pod takes more than a machine.
func TestSlots(t *testing.T) {
	m := &machines{pool: "pods", vmSize: "Standard_D4s_v5", each: size{4000, 16 << 30}, slotsEach: 16}
	for _, c := range []struct {
		cpu, memory string
		slots       int32
	}{{"0", "0", 1}, {"250m", "1Gi", 1}, {"251m", "1Gi", 2}, {"250m", "4Gi", 4}, {"4", "1Gi", 16}, {"4", "16Gi", 16}, {"4001m", "1Gi", 0}, {"1", "17Gi", 0}} {
		pod := onePod()
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(c.cpu), corev1.ResourceMemory: resource.MustParse(c.memory)}
		got, err := m.slotsOf(pod)
		if got != c.slots || errdefs.IsInvalidInput(err) != (c.slots == 0) {
			t.Errorf("%s, %s: got %d, %v, want %d", c.cpu, c.memory, got, err, c.slots)
		}
	}
}

// TestGPUs: pods get the GPUs of the configuration as their share of a machine, and no other devices.
func TestGPUs(t *testing.T) {
	c := Config{Containers: programs, GPUs: GPUs{"nvidia.com/gpu", 4}}
	m := &machines{pool: "pods", vmSize: "Standard_ND96", each: size{96000, 900 << 30}, slotsEach: 6, gpus: c.GPUs, most: 3}
	for asked, want := range map[string]int32{"0": 1, "1": 2, "2": 3, "3": 5, "4": 6, "5": 0} {
		pod := onePod()
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(asked)}
		pod.Spec.Containers[0].Resources.Requests = pod.Spec.Containers[0].Resources.Limits
		if err := c.refusePod(pod); err != nil {
			t.Errorf("%s: %v", asked, err)
		}
		if got, err := m.slotsOf(pod); got != want || errdefs.IsInvalidInput(err) != (want == 0) {
			t.Errorf("%s: got %d, %v, want %d slots", asked, got, err, want)
		}
	}
	offers := m.offeredResources()
	if q := offers["nvidia.com/gpu"]; q.Value() != 12 {
		t.Errorf("the node offers %v", offers)
	}
}

// TestSizes checks the resources of machine sizes, and that the configuration overrides them.
func TestSizes(t *testing.T) {
	for name, want := range map[string]size{
		"Standard_D4s_v5": {4000, 16 << 30}, "STANDARD_D96ads_V5": {96000, 384 << 30}, "standard_e48_v3": {48000, 384 << 30}, "Standard_F72s_v2": {72000, 144 << 30},
		"Standard_D4ps_v5": {}, "Standard_D4ls_v5": {}, "Standard_E64s_v5": {}, "Standard_NC6": {}, "Standard_D2_v2": {},
	} {
		if got, ok := (Config{}).sizeOf(name); got != want || ok != (want.milliCPU > 0) {
			t.Errorf("%s: got %v, %t, want %v", name, got, ok, want)
		}
	}
	said := Config{NodeResources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourceMemory: resource.MustParse("10Gi")}}
	for _, name := range []string{"Standard_NC6", "Standard_D4s_v5"} {
		if got, ok := said.sizeOf(name); got != (size{3000, 10 << 30}) || !ok {
			t.Errorf("%s: got %v, %t", name, got, ok)
		}
	}
}

// TestTasksOfOthersAreNotPods: a task of another cluster, node or client is not a pod of this node.
func TestTasksOfOthersAreNotPods(t *testing.T) {
	o := identity.Owner{Cluster: "home", Node: "vk-0"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u-1"}}
	d := &driver{owner: o}
	mine := d.taskContent(pod, "", 1)
	own := aTask("active", failed("", nil))
	own.ID, own.DisplayName = mine.ID, mine.DisplayName
	if got, ok := identifyTask(o, own); !ok || got != identity.Of(pod) {
		t.Errorf("got %v, %t", got, ok)
	}
	for _, other := range []identity.Owner{{Cluster: "other", Node: "vk-0"}, {Cluster: "home", Node: "vk-1"}} {
		if got, ok := identifyTask(other, own); ok {
			t.Errorf("%v has it as %v", other, got)
		}
	}
	own.ID = new("other-u-1")
	if _, ok := identifyTask(o, own); ok {
		t.Error("a task of another name is a pod")
	}
	own.ID, own.DisplayName = mine.ID, nil
	if _, ok := identifyTask(o, own); ok {
		t.Error("a task without a name is a pod")
	}
}

// TestRefuse: settings that tasks do not support are refused with their path.
func TestRefuse(t *testing.T) {
	for path, change := range map[string]func(p *corev1.Pod, c *corev1.Container){
		"metadata.uid": func(p *corev1.Pod, _ *corev1.Container) { p.UID = "a/b" },
		"spec.containers[0].resources": func(_ *corev1.Pod, c *corev1.Container) {
			c.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		},
		"spec.containers[0].image": func(_ *corev1.Pod, c *corev1.Container) { c.Image = "/an/image.sif" },
	} {
		pod := onePod()
		change(pod, &pod.Spec.Containers[0])
		if err := (Config{Containers: "unpack"}).refusePod(pod); !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("got %v, want %s", err, path)
		}
	}
}
