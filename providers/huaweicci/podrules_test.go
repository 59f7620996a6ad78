// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// These are the vendor's pages below https://support.huaweicloud.com/intl/en-us/, with their dates.
const (
	pageAPI     = "api-cci/pro_ys.html, 2024-05-31"
	pageProduct = "productdesc-cci/cci_03_0007.html, 2023-10-13 and 2025-10-31"
	pagePods    = "usermanual-cci/cci_01_0156.html, 2025-07-26"
	pageGPU     = "api-cci/createCoreV1NamespacedPod.html, 2024-11-06"
)

// podRule is a rule of CCI about values of a pod. The rules about the size of a whole pod are in wrongSum, from
// pageAPI and pageProduct, and in wrongSize.
type podRule struct {
	name, source string
	api          string // "": both
	broken       func(pod *corev1.Pod) string
}

var podRules = []podRule{
	{"requests and limits of a container are the same", pageAPI, "", ofContainers(func(k *corev1.Container) bool {
		r := k.Resources
		return fmt.Sprint(r.Limits.Cpu(), r.Limits.Memory()) != fmt.Sprint(r.Requests.Cpu(), r.Requests.Memory())
	})},
	{"a pod has at most five containers", pageAPI, API10, func(pod *corev1.Pod) string {
		if n := len(pod.Spec.Containers); n > 5 {
			return fmt.Sprint(n)
		}
		return ""
	}},
	{"the CPUs of a container are whole quarters", pageProduct, API10, ofContainers(func(k *corev1.Container) bool { return k.Resources.Limits.Cpu().MilliValue()%250 != 0 })},
	{"a container has 0.25 CPUs at least", pageAPI, API10, ofContainers(func(k *corev1.Container) bool { return k.Resources.Limits.Cpu().MilliValue() < 250 })},
	{"a container has 0.2 GiB at least", pageAPI, API10, ofContainers(func(k *corev1.Container) bool { return k.Resources.Limits.Memory().Value() < 1<<30/5 })},
	{"a startup probe is not by TCP", pagePods, API10, ofContainers(func(k *corev1.Container) bool { return k.StartupProbe != nil && k.StartupProbe.TCPSocket != nil })},
	{"a pod with GPUs names their driver", pageGPU, API10, func(pod *corev1.Pod) string {
		for i := range pod.Spec.Containers {
			for name := range pod.Spec.Containers[i].Resources.Limits {
				if driver := pod.Annotations["cri.cci.io/gpu-driver"]; strings.HasPrefix(string(name), "nvidia.com/gpu-") && driver != "gpu-418.126" && driver != "gpu-460.106" {
					return fmt.Sprintf("%s with the driver %q", name, driver)
				}
			}
		}
		return ""
	}},
	{"a pod is of no DaemonSet", pageProduct + "; " + pagePods, "", func(pod *corev1.Pod) string {
		for _, o := range pod.OwnerReferences {
			if o.Kind == "DaemonSet" {
				return o.Name
			}
		}
		return ""
	}},
	{"a container is not privileged", pageProduct, "", ofContainers(func(k *corev1.Container) bool {
		return k.SecurityContext != nil && k.SecurityContext.Privileged != nil && *k.SecurityContext.Privileged
	})},
	{"a pod has its own network", pageProduct + "; " + pagePods, "", func(pod *corev1.Pod) string {
		if pod.Spec.HostNetwork {
			return "hostNetwork"
		}
		return ""
	}},
	{"a volume is no directory of a machine", pageProduct, "", func(pod *corev1.Pod) string {
		for _, v := range pod.Spec.Volumes {
			if v.HostPath != nil {
				return v.Name
			}
		}
		return ""
	}},
}

// ofContainers returns a rule that applies to each container.
func ofContainers(broken func(k *corev1.Container) bool) func(pod *corev1.Pod) string {
	return func(pod *corev1.Pod) string {
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for j := range list {
				if broken(&list[j]) {
					return "container " + list[j].Name
				}
			}
		}
		return ""
	}
}

// TestPublishedC40SmallContainersOfCCI: API 1.0 accepts no container with less than a quarter of a CPU or 0.2
// GiB, and no fraction of a quarter.
func TestPublishedC40SmallContainersOfCCI(t *testing.T) {
	asked := []corev1.ResourceRequirements{resources("", "100m 64Mi"), resources("", "300m 1Gi"), resources("10m 1", "")}
	remote, err := adjusted(ofAPI(API10), corev1.PodSpec{InitContainers: containers(resources("", "30m 1Mi")), Containers: containers(asked...)})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range podRules {
		if why := rule.broken(remote); why != "" {
			t.Errorf("%s (%s): %s: %v", rule.name, rule.source, why, written(remote.Spec.Containers))
		}
	}
	var sum, memory float64
	for i := range remote.Spec.Containers {
		sum += remote.Spec.Containers[i].Resources.Limits.Cpu().AsApproximateFloat64()
		memory += remote.Spec.Containers[i].Resources.Limits.Memory().AsApproximateFloat64() / (1 << 30)
	}
	if why := wrongSum(sum, memory); why != "" {
		t.Errorf("the pod has no size of CCI: %s", why)
	}
}

// TestPublishedC41EveryRuleOfCCIIsKept checks that the fake CCI refuses exactly the pods that break a rule.
func TestPublishedC41EveryRuleOfCCIIsKept(t *testing.T) {
	broken := []func(pod *corev1.Pod, k *corev1.Container){ // in the order of the rules
		func(_ *corev1.Pod, k *corev1.Container) {
			k.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("250m")
		},
		func(pod *corev1.Pod, k *corev1.Container) {
			pod.Spec.Containers = []corev1.Container{*k, *k, *k, *k, *k, *k}
		},
		func(_ *corev1.Pod, k *corev1.Container) { k.Resources = resources("600m 1Gi", "600m 1Gi") },
		func(_ *corev1.Pod, k *corev1.Container) { k.Resources = resources("0 1Gi", "0 1Gi") },
		func(_ *corev1.Pod, k *corev1.Container) { k.Resources = resources("500m 100Mi", "500m 100Mi") },
		func(_ *corev1.Pod, k *corev1.Container) {
			k.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}}
		},
		func(_ *corev1.Pod, k *corev1.Container) {
			k.Resources.Limits["nvidia.com/gpu-tesla-v100-16GB"] = resource.MustParse("1")
		},
		func(pod *corev1.Pod, _ *corev1.Container) {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d"}}
		},
		func(_ *corev1.Pod, k *corev1.Container) {
			k.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		},
		func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.HostNetwork = true },
		func(pod *corev1.Pod, _ *corev1.Container) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		},
	}
	if len(broken) != len(podRules) {
		t.Fatalf("%d pods for %d rules", len(broken), len(podRules))
	}
	pod := func(change func(pod *corev1.Pod, k *corev1.Container)) *corev1.Pod {
		p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{Containers: containers(resources("500m 1Gi", "500m 1Gi"))}}
		change(p, &p.Spec.Containers[0])
		return p
	}
	wrong := func(p *corev1.Pod) string {
		body, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return (&cloud{api: API10}).wrongPod(body)
	}
	if why := wrong(pod(func(*corev1.Pod, *corev1.Container) {})); why != "" {
		t.Errorf("a pod that breaks no rule: %s", why)
	}
	for i, rule := range podRules {
		p := pod(broken[i])
		if rule.broken(p) == "" || wrong(p) == "" {
			t.Errorf("%s (%s): the double takes the pod", rule.name, rule.source)
		}
	}
}

// TestGPUsHaveADriver checks GPUs, which only API 1.0 has: the requests must equal the limits, and the driver
// comes from the configuration or from the pod.
func TestGPUsHaveADriver(t *testing.T) {
	const name = "nvidia.com/gpu-tesla-v100-16GB"
	pod := func() corev1.PodSpec {
		r := resources("", "4 32Gi")
		r.Limits[name] = resource.MustParse("1")
		return corev1.PodSpec{Containers: containers(r)}
	}
	c := ofAPI(API10)
	if _, err := adjusted(c, pod()); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "name gpuDriver") {
		t.Errorf("without a driver: got %v", err)
	}
	c.GPUDriver = "gpu-460.106"
	remote, err := adjusted(c, pod())
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range podRules {
		if why := rule.broken(remote); why != "" {
			t.Errorf("%s (%s): %s", rule.name, rule.source, why)
		}
	}
	r := remote.Spec.Containers[0].Resources
	if limit, request := r.Limits[name], r.Requests[name]; limit.Value() != 1 || request.Value() != 1 || r.Limits.Cpu().Value() != 4 || remote.Annotations["cri.cci.io/gpu-driver"] != c.GPUDriver {
		t.Errorf("got %+v with the annotations %v", r, remote.Annotations)
	}
	if _, err := adjusted(ofAPI(API20), pod()); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), name) {
		t.Errorf("API 2.0: got %v", err)
	}
}
