// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/checkcase"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/stackpath"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sshexec"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

func testMapping() mapping {
	return mapping{Config{CityCode: "ORD", Console: sshexec.Server{Address: "console.example.com:22"}}, identity.Owner{Cluster: "home", Node: "node"}}
}

func testPod(c corev1.Container, spec corev1.PodSpec) *corev1.Pod {
	c.Name, c.Image = "a", "reg.example.com/i"
	spec.Containers = append([]corev1.Container{c}, spec.Containers...)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u-1", Annotations: map[string]string{
		"workload.platform.stackpath.net/remote-management": "false", "other": "x",
	}}, Spec: spec}
}

// request returns the request for a pod whose containers are resolved by change.
func request(t *testing.T, m mapping, pod *corev1.Pod, change func(*service.Inputs)) (map[string]any, error) {
	t.Helper()
	of := identity.Of(pod)
	in := &service.Inputs{Pod: pod, Name: m.owner.Name(of), Tags: m.owner.Tags(of), Containers: map[string]*corev1.Container{}}
	_ = service.Containers(pod, func(c *corev1.Container, _ bool, _ *field.Path) error {
		in.Containers[c.Name] = c.DeepCopy()
		return nil
	})
	if change != nil {
		change(in)
	}
	data, err := m.workloadRequest(in)
	if err != nil {
		return nil, err
	}
	if err := stackpath.Check(data); err != nil {
		t.Errorf("the description does not have it: %v", err)
	}
	var out struct{ Workload map[string]any }
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out.Workload, nil
}

// TestAPodBecomesAWorkload compares the whole request.
func TestAPodBecomesAWorkload(t *testing.T) {
	fromSecret := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}
	}
	http := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http"), HTTPHeaders: []corev1.HTTPHeader{{Name: "H", Value: "v"}, {Name: "H", Value: "w"}}}}
	pod := testPod(corev1.Container{
		Command: []string{"run"}, Args: []string{"x"}, WorkingDir: "/w", ImagePullPolicy: corev1.PullAlways,
		TerminationMessagePath: "/m", TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Env: []corev1.EnvVar{{Name: "PLAIN", Value: "p"}, {Name: "EMPTY"}, fromSecret("PW"), {Name: "URL", Value: "db://$(PW)"},
			{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}, {Name: "KUBERNETES_OWN", Value: "o"}},
		Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: 80}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}, {ContainerPort: 54}},
		Resources:      corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}, Limits: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("5Gi"), "nvidia.com/gpu": resource.MustParse("1")}},
		LivenessProbe:  &corev1.Probe{ProbeHandler: http, PeriodSeconds: 3},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}, InitialDelaySeconds: 1, TimeoutSeconds: 2, SuccessThreshold: 4, FailureThreshold: 5},
		StartupProbe:   &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}},
		Lifecycle:      &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"down"}}}},
		SecurityContext: &corev1.SecurityContext{
			RunAsUser: new(int64(0)), RunAsGroup: new(int64(8)), RunAsNonRoot: new(false), ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
		},
	}, corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(0)), ShareProcessNamespace: new(true), HostAliases: []corev1.HostAlias{{IP: "10.0.0.8", Hostnames: []string{"db"}}},
		DNSConfig:       &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.9"}, Searches: []string{"s"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("5")}}},
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(7)), RunAsNonRoot: new(true), SupplementalGroups: []int64{5, 6}},
		InitContainers:  []corev1.Container{{Name: "i", Image: "reg.example.com/i"}}, Containers: []corev1.Container{{Name: "b", Image: "other"}},
	})
	got, err := request(t, testMapping(), pod, func(in *service.Inputs) {
		env := in.Containers["a"].Env
		env[2] = corev1.EnvVar{Name: "PW", Value: "s3cret"}
		env[3].Value = "db://s3cret"
		in.Containers["a"].Env = append(env, corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "10.0.0.1"}, corev1.EnvVar{Name: "OF_ALL", Value: "of a Secret"})
		in.Logins = []node.RegistryCredential{{Registry: "https://reg.example.com/v1/", Username: "u", Password: "p"}}
	})
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	text := `{"name":"NAME","slug":"NAME",
	"metadata":{"labels":{"vk-cluster":"home","vk-node":"node","vk-namespace":"ns","vk-name":"web","vk-uid":"u-1"},"annotations":{"workload.platform.stackpath.net/remote-management":"true"}},
	"targets":{"node":{"spec":{"deploymentScope":"cityCode","deployments":{"minReplicas":1,"maxReplicas":1,"selectors":[{"key":"cityCode","operator":"In","values":["ORD"]}]}}}},
	"spec":{"networkInterfaces":[{"network":"default"}],"imagePullCredentials":[{"dockerRegistry":{"server":"reg.example.com","username":"u","password":"p"}}],
	"initContainers":{"i":{"image":"reg.example.com/i","resources":SP1}},
	"containers":{"b":{"image":"other","resources":SP1},"a":{
		"image":"reg.example.com/i","command":["run"],"args":["x"],"workingDir":"/w","imagePullPolicy":"ALWAYS","terminationMessagePath":"/m","terminationMessagePolicy":"FALLBACK_TO_LOGS_ON_ERROR",
		"resources":{"requests":{"cpu":"2","memory":"8Gi","nvidia-a16":"1"},"limits":{"cpu":"2","memory":"8Gi","nvidia-a16":"1"}},
		"env":{"PLAIN":{"value":"p"},"EMPTY":{"value":""},"KUBERNETES_OWN":{"value":"o"},"PW":{"secretValue":"s3cret"},"URL":{"secretValue":"db://s3cret"},"OF_ALL":{"secretValue":"of a Secret"},"IP":{"valueFrom":{"instanceFieldRef":{"fieldPath":".ipAddress"}}}},
		"ports":{"http":{"port":80,"protocol":"TCP"},"udp-53":{"port":53,"protocol":"UDP"},"tcp-54":{"port":54,"protocol":"TCP"}},
		"livenessProbe":{"httpGet":{"path":"/","port":80,"scheme":"HTTP","httpHeaders":{"H":"v, w"}},"periodSeconds":3},
		"readinessProbe":{"tcpSocket":{"port":80},"initialDelaySeconds":1,"timeoutSeconds":2,"successThreshold":4,"failureThreshold":5},
		"startupProbe":{"exec":{"command":["true"]}},"lifecycle":{"preStop":{"exec":{"command":["down"]}}},
		"securityContext":{"runAsUser":"0","runAsGroup":"8","runAsNonRoot":false,"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}}},
	"runtime":{"containers":{"terminationGracePeriodSeconds":"0","shareProcessNamespace":true,"hostAliases":[{"ip":"10.0.0.8","hostnames":["db"]}],
		"dnsConfig":{"nameservers":["10.0.0.9"],"searches":["s"],"options":[{"name":"ndots","value":"5"}]},
		"securityContext":{"runAsUser":"7","runAsNonRoot":true,"supplementalGroups":["5","6"]}}}}}`
	text = strings.ReplaceAll(text, "NAME", testMapping().owner.Name(identity.Of(pod)))
	text = strings.ReplaceAll(text, "SP1", `{"requests":{"cpu":"1","memory":"2Gi"},"limits":{"cpu":"1","memory":"2Gi"}}`)
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestPortsAreClosed checks that ports are closed to the internet unless the configuration opens them.
func TestPortsAreClosed(t *testing.T) {
	pod := testPod(corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: 80}}}, corev1.PodSpec{})
	m := testMapping()
	for _, open := range []bool{false, true} {
		m.config.OpenPorts = open
		got, err := request(t, m, pod, nil)
		data, _ := json.Marshal(got)
		if err != nil || strings.Contains(string(data), `"enableImplicitNetworkPolicy":true`) != open {
			t.Errorf("open %t: %v, %s", open, err, data)
		}
	}
}

// TestSizes checks the bounds of the table: a container gets at least the requested resources.
func TestSizes(t *testing.T) {
	for _, c := range []struct{ cpu, memory, want string }{
		{"0", "0", "1 2Gi"}, {"1", "2Gi", "1 2Gi"}, {"1001m", "1Gi", "2 4Gi"}, {"1", "2049Mi", "2 4Gi"}, {"1", "5Gi", "2 8Gi"}, {"2", "9Gi", "4 16Gi"}, {"5", "1Gi", "8 32Gi"},
		{"9", "1Gi", "16 64Gi"}, {"1", "65Gi", "32 128Gi"}, {"33", "1Gi", "48 256Gi"}, {"48", "256Gi", "48 256Gi"}, {"49", "1Gi", ""}, {"1", "257Gi", ""},
	} {
		list := corev1.ResourceList{"cpu": resource.MustParse(c.cpu), "memory": resource.MustParse(c.memory)}
		got, err := request(t, testMapping(), testPod(corev1.Container{Resources: corev1.ResourceRequirements{Requests: list}}, corev1.PodSpec{}), nil)
		if c.want == "" {
			if !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), "spec.containers[0].resources: ") {
				t.Errorf("%s, %s: got %v", c.cpu, c.memory, err)
			}
			continue
		}
		data, _ := json.Marshal(got)
		cpu, memory, _ := strings.Cut(c.want, " ")
		if err != nil || !strings.Contains(string(data), `"resources":{"limits":{"cpu":"`+cpu+`","memory":"`+memory+`"}`) {
			t.Errorf("%s, %s: got %v, %s, want %s", c.cpu, c.memory, err, data, c.want)
		}
	}
}

// TestRestartPolicyNeverIsRefused: the service restarts all ended containers, so a pod that must end never would.
func TestRestartPolicyNeverIsRefused(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure, corev1.RestartPolicyAlways} {
		pod := testPod(corev1.Container{}, corev1.PodSpec{RestartPolicy: policy})
		lacks := Config{}.Capabilities().Check(pod)
		if policy == corev1.RestartPolicyAlways {
			if len(lacks) > 0 {
				t.Errorf("%s: got %s", policy, capability.Message(lacks))
			}
			continue
		}
		if len(lacks) != 1 || lacks[0].Path != "spec.restartPolicy" {
			t.Errorf("%s: got %v, want that spec.restartPolicy is refused", policy, lacks)
		}
	}
	h := newHome(t)
	p, _ := h.start()
	pod := h.Pod("default", "job", program.Program{})
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	if err := p.CreatePod(t.Context(), pod); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "spec.restartPolicy") {
		t.Errorf("the node: got %v", err)
	}
	if n := len(h.region.front.Requests("CreateWorkload")); n != 0 {
		t.Errorf("%d workloads were asked for", n)
	}
}

// TestRefusals: settings that workloads do not support are refused with their field.
func TestRefusals(t *testing.T) {
	exec := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"x"}}}
	for path, pod := range map[string]*corev1.Pod{
		"spec.initContainers[1]":                                         testPod(corev1.Container{}, corev1.PodSpec{InitContainers: []corev1.Container{{Name: "i"}, {Name: "j"}}}),
		"spec.terminationGracePeriodSeconds":                             testPod(corev1.Container{}, corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(301))}),
		"spec.os":                                                        testPod(corev1.Container{}, corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}}),
		"spec.containers[0].imagePullPolicy":                             testPod(corev1.Container{ImagePullPolicy: corev1.PullNever}, corev1.PodSpec{}),
		"spec.containers[0].ports[0].protocol":                           testPod(corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: 1, Protocol: corev1.ProtocolSCTP}}}, corev1.PodSpec{}),
		"spec.containers[0].resources":                                   testPod(corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"example.com/fpga": resource.MustParse("1")}}}, corev1.PodSpec{}),
		"spec.containers[0].livenessProbe.terminationGracePeriodSeconds": testPod(corev1.Container{LivenessProbe: &corev1.Probe{ProbeHandler: exec, TerminationGracePeriodSeconds: new(int64(1))}}, corev1.PodSpec{}),
		"spec.containers[0].startupProbe":                                testPod(corev1.Container{StartupProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1}}}}, corev1.PodSpec{}),
		"spec.containers[0].readinessProbe":                              testPod(corev1.Container{ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "db"}}}}, corev1.PodSpec{}),
		"spec.containers[0].readinessProbe.httpGet.port":                 testPod(corev1.Container{ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("x")}}}}, corev1.PodSpec{}),
		"spec.containers[0].lifecycle.preStop":                           testPod(corev1.Container{Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}}, corev1.PodSpec{}),
		"spec.containers[0].env":                                         testPod(corev1.Container{Env: []corev1.EnvVar{{Name: "H", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.hostIP"}}}}}, corev1.PodSpec{}),
		"spec.containers[0].args[0]":                                     testPod(corev1.Container{Args: []string{"$(PW)"}, Env: []corev1.EnvVar{{Name: "PW", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}}}, corev1.PodSpec{}),
	} {
		if _, err := request(t, testMapping(), pod, nil); !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("got %v, want an error of the kind invalid-input that begins with %s", err, path)
		}
	}
}

// TestCheckAndNodeRefuseInTheSameWords: a node accepts the pods that check accepts, and refuses other pods with the same message.
func TestCheckAndNodeRefuseInTheSameWords(t *testing.T) {
	h := newHome(t)
	p, _ := h.start()
	p.UsePodObjects(checkcase.Objects{})
	checkcase.Compare(t, p.Capabilities().LeaveOut, p.CreatePod, p.driver.mapping.checkPod, program.Program{Stay: program.Forever}.Args()...)
}
