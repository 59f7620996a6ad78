// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

var settings = Settings{Node: "vk", LogRoot: "/logs", SeccompRoot: "/profiles", MemoryCapacity: 8 << 30, OOMScoreFloor: -1000}

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u1", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

func container(t *testing.T, p *corev1.Pod) *runtimeapi.ContainerConfig {
	t.Helper()
	c, err := settings.Container(Instance{Pod: p, Container: &p.Spec.Containers[0], Attempt: 2, ImageRef: "sha256:1", ImageUser: User{ID: new(int64)}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSandboxIsFoundAgain(t *testing.T) {
	p := pod(func(p *corev1.Pod) {
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = []corev1.Container{{Name: "proxy", Image: "proxy:1", RestartPolicy: &always}}
		p.Annotations = map[string]string{"note": "x"}
	})
	config, err := settings.Sandbox(p, 1, Network{Hostname: "web"})
	if err != nil {
		t.Fatal(err)
	}
	found := Skeleton(config.Labels, config.Annotations)
	if diff := cmp.Diff(p, found, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the pod that its sandbox tells of (-want +got):\n%s", diff)
	}
	if found.Spec.NodeName != "" {
		t.Error("a skeleton has a node name: it would be taken for the pod itself")
	}
}

func TestEnvironmentIsNotInTheAnnotations(t *testing.T) {
	p := pod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}}
		p.Spec.Containers[0].Args = []string{"--password=hunter2"}
	})
	config, err := settings.Sandbox(p, 0, Network{})
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range config.Annotations {
		if strings.Contains(value, "hunter2") {
			t.Errorf("annotation %s has what only the container is to know: %s", key, value)
		}
	}
}

func TestContainersAreSecured(t *testing.T) {
	yes, no, uid, gid := true, false, int64(1000), int64(2000)
	strict := corev1.SupplementalGroupsPolicyStrict
	unmasked := corev1.UnmaskedProcMount
	profile := "audit.json"
	for _, test := range []struct {
		name   string
		change func(*corev1.Pod)
		want   func(*runtimeapi.LinuxContainerSecurityContext)
	}{
		{"nothing said", nil, func(*runtimeapi.LinuxContainerSecurityContext) {}},
		{"user and groups of the pod", func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &uid, RunAsGroup: &gid, FSGroup: &gid, SupplementalGroups: []int64{5}, SupplementalGroupsPolicy: &strict}
		}, func(s *runtimeapi.LinuxContainerSecurityContext) {
			s.RunAsUser, s.RunAsGroup = &runtimeapi.Int64Value{Value: 1000}, &runtimeapi.Int64Value{Value: 2000}
			s.SupplementalGroups, s.SupplementalGroupsPolicy = []int64{2000, 5}, runtimeapi.SupplementalGroupsPolicy_Strict
		}},
		{"the container's own before the pod's", func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &gid}
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: &uid}
		}, func(s *runtimeapi.LinuxContainerSecurityContext) { s.RunAsUser = &runtimeapi.Int64Value{Value: 1000} }},
		{"no new privileges, read-only, capabilities", func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
				Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}, Drop: []corev1.Capability{"ALL"}},
			}
		}, func(s *runtimeapi.LinuxContainerSecurityContext) {
			s.NoNewPrivs, s.ReadonlyRootfs = true, true
			s.Capabilities = &runtimeapi.Capability{AddCapabilities: []string{"NET_ADMIN"}, DropCapabilities: []string{"ALL"}}
		}},
		{"privileged, unmasked", func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes, ProcMount: &unmasked}
		}, func(s *runtimeapi.LinuxContainerSecurityContext) {
			s.Privileged, s.MaskedPaths, s.ReadonlyPaths = true, nil, nil
		}},
		{"profiles", func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{
				SeccompProfile:  &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &profile},
				AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &profile},
				SELinuxOptions:  &corev1.SELinuxOptions{Level: "s0"},
			}
		}, func(s *runtimeapi.LinuxContainerSecurityContext) {
			s.Seccomp = &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: "/profiles/audit.json"}
			s.Apparmor, s.ApparmorProfile = &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: profile}, "localhost/audit.json" //nolint:staticcheck // SA1019: containerd 1.6 reads the deprecated field only
			s.SelinuxOptions = &runtimeapi.SELinuxOption{Level: "s0"}
		}},
		{"namespaces of the machine", func(p *corev1.Pod) { p.Spec.HostNetwork, p.Spec.HostPID, p.Spec.HostIPC = true, true, true },
			func(s *runtimeapi.LinuxContainerSecurityContext) {
				node := runtimeapi.NamespaceMode_NODE
				s.NamespaceOptions = &runtimeapi.NamespaceOption{Network: node, Pid: node, Ipc: node}
			}},
		{"processes that see each other", func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = &yes },
			func(s *runtimeapi.LinuxContainerSecurityContext) {
				s.NamespaceOptions = &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_POD}
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := &runtimeapi.LinuxContainerSecurityContext{
				RunAsUser:        &runtimeapi.Int64Value{},
				NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER},
				Seccomp:          &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined},
				MaskedPaths:      maskedPaths(), ReadonlyPaths: readonlyPaths(),
			}
			test.want(want)
			got := container(t, pod(test.change)).Linux.SecurityContext
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("security context (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProfileOutsideOfTheirDirectoryIsRefused(t *testing.T) {
	outside := "../../etc/passwd"
	p := pod(func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &outside}}
	})
	if _, err := settings.Container(Instance{Pod: p, Container: &p.Spec.Containers[0]}); err == nil {
		t.Error("got no error")
	}
}

func TestResourcesOfContainers(t *testing.T) {
	for _, test := range []struct {
		name             string
		requests, limits corev1.ResourceList
		want             *runtimeapi.LinuxContainerResources
	}{
		{"none", nil, nil, &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000, CpuShares: 2, OomScoreAdj: 1000}},
		{"guaranteed", list("500m", "1Gi"), list("500m", "1Gi"), &runtimeapi.LinuxContainerResources{
			CpuPeriod: 100_000, CpuQuota: 50_000, CpuShares: 512, MemoryLimitInBytes: 1 << 30, OomScoreAdj: -997,
		}},
		{"burstable", list("250m", "2Gi"), nil, &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000, CpuShares: 256, OomScoreAdj: 750}},
		{"a limit only", nil, list("2", "1Gi"), &runtimeapi.LinuxContainerResources{
			CpuPeriod: 100_000, CpuQuota: 200_000, CpuShares: 2048, MemoryLimitInBytes: 1 << 30, OomScoreAdj: -997,
		}},
		{"very little", list("1m", "1Mi"), list("1m", "2Mi"), &runtimeapi.LinuxContainerResources{
			CpuPeriod: 100_000, CpuQuota: 1000, CpuShares: 2, MemoryLimitInBytes: 2 << 20, OomScoreAdj: 999,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := pod(func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: test.requests, Limits: test.limits}
			})
			if diff := cmp.Diff(test.want, settings.Resources(p, &p.Spec.Containers[0]), protocmp.Transform()); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOOMScoreIsNotBelowThatOfTheProcess(t *testing.T) {
	p := pod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list("1", "1Gi"), Limits: list("1", "1Gi")}
	})
	s := settings
	s.OOMScoreFloor = 200
	if got := s.Resources(p, &p.Spec.Containers[0]).OomScoreAdj; got != 200 {
		t.Errorf("got %d, want 200", got)
	}
}

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func TestHostPorts(t *testing.T) {
	p := pod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080, HostIP: "192.0.2.1", Protocol: corev1.ProtocolTCP}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}}
	})
	config, err := settings.Sandbox(p, 0, Network{})
	if err != nil {
		t.Fatal(err)
	}
	want := []*runtimeapi.PortMapping{{ContainerPort: 80, HostPort: 8080, HostIp: "192.0.2.1"}, {ContainerPort: 53, Protocol: runtimeapi.Protocol_UDP}}
	if diff := cmp.Diff(want, config.PortMappings, protocmp.Transform()); diff != "" {
		t.Errorf("port mappings (-want +got):\n%s", diff)
	}
}

func TestNonRoot(t *testing.T) {
	yes, root, some := true, int64(0), int64(7)
	at := ` (pod: "web_ns(u1)", container: main)`
	for _, test := range []struct {
		name  string
		user  *int64
		image User
		want  string
	}{
		{"user of the pod", &some, User{ID: &root}, ""},
		{"root by the pod", &root, User{ID: &some}, "container's runAsUser breaks non-root policy" + at},
		{"user of the image", nil, User{ID: &some}, ""},
		{"root by the image", nil, User{ID: &root}, "container has runAsNonRoot and image will run as root" + at},
		{"a name", nil, User{Name: "app"}, "container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root" + at},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := pod(func(p *corev1.Pod) {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: test.user}
			})
			got := ""
			if err := VerifyNonRoot(p, &p.Spec.Containers[0], test.image); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
