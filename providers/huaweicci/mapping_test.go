// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
)

// resources returns the resources of a container: "cpu memory" of requests and of limits, "" for none.
func resources(requests, limits string) corev1.ResourceRequirements {
	list := func(text string) corev1.ResourceList {
		cpu, memory, _ := strings.Cut(text, " ")
		l := corev1.ResourceList{}
		if cpu != "" && cpu != "-" {
			l[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			l[corev1.ResourceMemory] = resource.MustParse(memory)
		}
		if len(l) == 0 {
			return nil
		}
		return l
	}
	return corev1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}
}

func containers(all ...corev1.ResourceRequirements) (out []corev1.Container) {
	for i, r := range all {
		out = append(out, corev1.Container{Name: string(rune('a' + i)), Image: "image", Resources: r})
	}
	return out
}

func ofAPI(api string) Config {
	c := Config{API: api}
	c.completeSizes(func(string, ...any) {})
	return c
}

// adjusted returns the remote pod for a spec.
func adjusted(c Config, spec corev1.PodSpec) (*corev1.Pod, error) {
	remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}, Spec: spec}
	return remote, c.adjustPod(&corev1.Pod{}, remote)
}

func written(list []corev1.Container) (out []string) {
	for i := range list {
		r := list[i].Resources
		limits := r.Limits.Cpu().String() + " " + r.Limits.Memory().String()
		if !r.Limits.Cpu().Equal(*r.Requests.Cpu()) || !r.Limits.Memory().Equal(*r.Requests.Memory()) || len(r.Limits) != len(r.Requests) {
			limits += " but requests differ"
		}
		out = append(out, limits)
	}
	return out
}

func TestSizes(t *testing.T) {
	for name, tt := range map[string]struct {
		api             string
		init, app, want []corev1.ResourceRequirements
		size            string
	}{
		"what is asked":              {api: API20, app: []corev1.ResourceRequirements{resources("", "2 4Gi")}, size: "2.00_4.0"},
		"rounded up":                 {api: API20, app: []corev1.ResourceRequirements{resources("", "1100m 4200Mi")}, size: "2.00_5.0"},
		"memory decides":             {api: API20, app: []corev1.ResourceRequirements{resources("", "250m 9Gi")}, size: "2.00_9.0"},
		"nothing is asked":           {api: API20, app: []corev1.ResourceRequirements{resources("", "")}, size: "1.00_2.0"},
		"no memory is asked":         {api: API20, app: []corev1.ResourceRequirements{resources("500m", "")}, size: "0.50_2.0"},
		"the limit goes before":      {api: API20, app: []corev1.ResourceRequirements{resources("100m 100Mi", "250m 512Mi")}, want: []corev1.ResourceRequirements{resources("250m 512Mi", "250m 512Mi")}, size: "0.25_0.5"},
		"containers together":        {api: API20, app: []corev1.ResourceRequirements{resources("", "500m 1Gi"), resources("600m 1Gi", ""), resources("", "")}, size: "2.00_2.0"},
		"the largest init container": {api: API20, init: []corev1.ResourceRequirements{resources("4 1Gi", ""), resources("1 8Gi", "")}, app: []corev1.ResourceRequirements{resources("1 1Gi", "")}, size: "4.00_8.0"},
		"by fours":                   {api: API20, app: []corev1.ResourceRequirements{resources("", "5 9Gi")}, size: "8.00_12.0"},
		"the largest":                {api: API20, app: []corev1.ResourceRequirements{resources("", "64 512Gi")}, size: "64.00_512.0"},

		"1.0: what is asked": {api: API10, app: []corev1.ResourceRequirements{resources("", "1 2Gi")}, want: []corev1.ResourceRequirements{resources("1 2Gi", "1 2Gi")}},
		"1.0: the first container gets the rest": {api: API10, app: []corev1.ResourceRequirements{resources("", "600m 3Gi"), resources("", "600m 512Mi")},
			want: []corev1.ResourceRequirements{resources("750m 3584Mi", "750m 3584Mi"), resources("750m 512Mi", "750m 512Mi")}},
		"1.0: nothing is asked":        {api: API10, app: []corev1.ResourceRequirements{resources("", "")}, want: []corev1.ResourceRequirements{resources("1 2Gi", "1 2Gi")}},
		"1.0: memory has a proportion": {api: API10, app: []corev1.ResourceRequirements{resources("", "4 1Gi")}, want: []corev1.ResourceRequirements{resources("4 8Gi", "4 8Gi")}},
		"1.0: so has the CPU":          {api: API10, app: []corev1.ResourceRequirements{resources("", "250m 16Gi")}, want: []corev1.ResourceRequirements{resources("2 16Gi", "2 16Gi")}},
	} {
		remote, err := adjusted(ofAPI(tt.api), corev1.PodSpec{InitContainers: containers(tt.init...), Containers: containers(tt.app...)})
		if err != nil || remote.Annotations[annotationSize] != tt.size {
			t.Errorf("%s: size %q (%v), want %q", name, remote.Annotations[annotationSize], err, tt.size)
		}
		if tt.want != nil {
			if diff := cmp.Diff(written(containers(tt.want...)), written(remote.Spec.Containers)); diff != "" {
				t.Errorf("%s (-want +got): %s", name, diff)
			}
		}
	}
}

// TestEverySizeIsSold requests sizes between the sold ones, and compares the results with the tables of the
// test.
func TestEverySizeIsSold(t *testing.T) {
	for milli := int64(0); milli <= 64000; milli += 125 {
		for _, memory := range []int64{0, 1, 300 * sizing.Mi, sizing.Gi - 1, sizing.Gi, sizing.Gi + 1, 3 * sizing.Gi, 7*sizing.Gi + 5, 33 * sizing.Gi, 65 * sizing.Gi, 129 * sizing.Gi, 300 * sizing.Gi, 512 * sizing.Gi} {
			asked := sizing.Size{MilliCPU: milli, Memory: memory}
			got, ok := sizing.Fit(sizes20, asked)
			if !ok {
				t.Fatalf("%s: no size", asked)
			}
			if why := wrongSize(formatSize(got), float64(milli)/1000, float64(memory)/float64(sizing.Gi)); why != "" {
				t.Errorf("%s: got %s: %s", asked, formatSize(got), why)
			}
			if got, ok = sizing.Fit(sizes10, asked); !ok || wrongSum(float64(got.MilliCPU)/1000, float64(got.Memory)/float64(sizing.Gi)) != "" || got.MilliCPU < milli || got.Memory < memory {
				t.Errorf("%s: API 1.0: got %s, %t", asked, got, ok)
			}
		}
	}
	for _, rows := range [][]sizing.Row{sizes10, sizes20} {
		if got, ok := sizing.Fit(rows, sizing.Size{MilliCPU: 64001, Memory: sizing.Gi}); ok {
			t.Errorf("more than CCI sells: got %s", got)
		}
	}
}

func TestRefusals(t *testing.T) {
	main := func(change func(*corev1.Container)) corev1.PodSpec {
		list := containers(resources("", ""))
		change(&list[0])
		return corev1.PodSpec{Containers: list, Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}}
	}
	grpc := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 80}}}
	tcp := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}
	for want, tt := range map[string]struct {
		spec corev1.PodSpec
		only string // the only API that refuses it; "" for both
	}{
		"spec.hostNetwork":                      {spec: corev1.PodSpec{HostNetwork: true, Containers: containers(resources("", ""))}},
		"spec.volumes[0].hostPath":              {spec: corev1.PodSpec{Containers: containers(resources("", "")), Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}}}},
		"spec.containers[0].livenessProbe.grpc": {spec: main(func(k *corev1.Container) { k.LivenessProbe = grpc })},
		"spec.containers[0].ports[0].hostPort":  {spec: main(func(k *corev1.Container) { k.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}} })},
		"securityContext.privileged":            {spec: main(func(k *corev1.Container) { k.SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)} })},
		"lifecycle.preStop.sleep": {spec: main(func(k *corev1.Container) {
			k.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}
		})},
		"spec.initContainers[0].restartPolicy": {spec: corev1.PodSpec{InitContainers: []corev1.Container{{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}, Containers: containers(resources("", ""))}},
		"startupProbe.tcpSocket":               {spec: main(func(k *corev1.Container) { k.StartupProbe = tcp }), only: API10},
		"subPath: CCI has none of an emptyDir": {spec: main(func(k *corev1.Container) { k.VolumeMounts = []corev1.VolumeMount{{Name: "tmp", SubPath: "a"}} })},
		"resource nvidia.com/gpu": {spec: main(func(k *corev1.Container) {
			k.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		})},
		"requests 21Gi of ephemeral-storage": {spec: main(func(k *corev1.Container) {
			k.Resources.Requests = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("21Gi")}
		})},
		"the pod needs 100 CPUs and 2Gi": {spec: corev1.PodSpec{Containers: containers(resources("", "100"))}},
		"spec.containers: 6":             {spec: corev1.PodSpec{Containers: containers(make([]corev1.ResourceRequirements, 6)...)}, only: API10},
	} {
		for _, api := range []string{API20, API10} {
			_, err := adjusted(ofAPI(api), *tt.spec.DeepCopy())
			if tt.only != "" && tt.only != api {
				if err != nil {
					t.Errorf("API %s: %s: got %v, want none", api, want, err)
				}
				continue
			}
			if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("API %s: got %v, want an error of the kind invalid-input about %s", api, err, want)
			}
		}
	}
	home := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", Controller: ptr.To(true)}}}}
	if err := ofAPI(API20).adjustPod(home, &corev1.Pod{Spec: corev1.PodSpec{Containers: containers(resources("", ""))}}); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "agent") {
		t.Errorf("a pod of a DaemonSet: got %v", err)
	}
}

// TestStorageIsGiven checks that storage requests are not sent: CCI gives each pod its storage, and its API has
// no field for it.
func TestStorageIsGiven(t *testing.T) {
	for _, api := range []string{API20, API10} {
		spec := corev1.PodSpec{Containers: containers(resources("250m 512Mi", ""))}
		spec.Containers[0].Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("50Mi")
		remote, err := adjusted(ofAPI(api), spec)
		if err != nil {
			t.Fatal(err)
		}
		if r := remote.Spec.Containers[0].Resources; len(r.Requests) != 2 || len(r.Limits) != 2 {
			t.Errorf("API %s gets %v", api, r)
		}
	}
}

func TestLeftOut(t *testing.T) {
	spec := corev1.PodSpec{ServiceAccountName: "tenant", AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false), Containers: containers(resources("", ""))}
	spec.Containers[0].ImagePullPolicy, spec.Subdomain = corev1.PullAlways, "members"
	c := ofAPI(API20)
	c.InstanceType = "general-computing"
	remote, err := adjusted(c, *spec.DeepCopy())
	if s := remote.Spec; err != nil || s.Subdomain != "" || s.ServiceAccountName != "" || s.AutomountServiceAccountToken != nil || s.EnableServiceLinks != nil || s.Containers[0].ImagePullPolicy != "" {
		t.Errorf("API 2.0 gets %+v (%v)", s, err)
	}
	if remote.Annotations[annotationType] != "general-computing" {
		t.Errorf("API 2.0 gets the annotations %v", remote.Annotations)
	}
	remote, err = adjusted(ofAPI(API10), *spec.DeepCopy())
	if s := remote.Spec; err != nil || s.Subdomain == "" || s.ServiceAccountName == "" || s.AutomountServiceAccountToken == nil || s.Containers[0].ImagePullPolicy == "" {
		t.Errorf("API 1.0 gets %+v (%v)", s, err)
	}
}
