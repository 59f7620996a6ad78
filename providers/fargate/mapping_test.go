// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

var update = flag.Bool("update", false, "write the golden files")

const canary = "s3cr3t-c4n4ry"

func testMapping(t *testing.T) mapping {
	return mapping{config: testConfig(t, nil), owner: identity.Owner{Cluster: "home", Node: "node"}}
}

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// testPod returns a pod that uses every supported feature.
func testPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6f2d8e1c-0000-4000-8000-000000000001", Annotations: map[string]string{
			AnnotationRole: testRole, AnnotationCapacityProvider: Spot,
		}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: ptr.To[int64](45),
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1000), RunAsNonRoot: ptr.To(true)},
			Volumes:         []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			InitContainers: []corev1.Container{
				{Name: "first", Image: "busybox", Command: []string{"first"}, Resources: corev1.ResourceRequirements{Requests: list("1", "1Gi")}},
				{Name: "side", Image: "busybox", Command: []string{"side"}, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
				{Name: "second", Image: "busybox", Args: []string{"second", "arg"}},
			},
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/web:1", Command: []string{"/bin/web", "$$x"}, Args: []string{"--name=$(PLAIN)"}, WorkingDir: "/srv",
				Env: []corev1.EnvVar{
					{Name: "PLAIN", Value: "x"},
					{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}},
				},
				Ports:        []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data", ReadOnly: true}},
				Resources:    corev1.ResourceRequirements{Requests: list("300m", "100M"), Limits: list("500m", "1Gi")},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"ready", "now"}}},
					PeriodSeconds: 2, TimeoutSeconds: 1, FailureThreshold: 4, InitialDelaySeconds: 7},
				SecurityContext: &corev1.SecurityContext{RunAsGroup: ptr.To[int64](2000), ReadOnlyRootFilesystem: ptr.To(true),
					Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_PTRACE"}, Drop: []corev1.Capability{"ALL"}}},
			}, {
				Name: "other", Image: "123456789012.dkr.ecr.eu-central-1.amazonaws.com/other", Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("30G")}},
			}},
		},
	}
}

// vaultOf returns a vault that names secrets with the key.
func vaultOf(m mapping, key string) vault {
	return vault{config: m.config, owner: m.owner, key: []byte(key)}
}

func testResolved(pod *corev1.Pod) *service.Inputs {
	r := &service.Inputs{Pod: pod, Containers: map[string]*corev1.Container{}}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		full := c.DeepCopy()
		for j := range full.Env {
			if full.Env[j].ValueFrom != nil {
				full.Env[j].Value, full.Env[j].ValueFrom = canary, nil
			}
		}
		for j := range full.Args {
			full.Args[j] = strings.ReplaceAll(full.Args[j], "$(PLAIN)", "x")
		}
		r.Containers[c.Name] = full
	}
	return r
}

// TestRequests compares the requests to ECS for a pod with a golden file.
func TestRequests(t *testing.T) {
	m, r := testMapping(t), testResolved(testPod())
	secrets, err := vaultOf(m, "key").secrets(r)
	if err != nil || len(secrets) != 1 || secrets["main"].text != `{"PASSWORD":"`+canary+`"}` {
		t.Fatalf("got the secrets %v, %v", secrets, err)
	}
	if said := fmt.Sprintf("%v %+v %#v %s %q", secrets, secrets, secrets, secrets, secrets); strings.Contains(said, canary) {
		t.Error("a secret is printed")
	}
	definition, err := m.definition(r, map[string]string{"main": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:" + secrets["main"].name})
	if err != nil {
		t.Fatal(err)
	}
	task, err := m.task(r.Pod, "arn:of:"+aws.ToString(definition.Family))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(map[string]any{"definition": definition, "task": task}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(got), canary) {
		t.Error("the requests have the value of a secret")
	}
	path := filepath.Join("testdata", "requests.json")
	if *update {
		if err := os.WriteFile(path, append(got, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("the requests differ (-want +got):\n%s", diff)
	}
}

// TestDefinitionsAreShared checks that equal pods share a definition, and that different pods do not.
func TestDefinitionsAreShared(t *testing.T) {
	m := testMapping(t)
	family := func(change func(*corev1.Pod), secret string) string {
		t.Helper()
		pod := testPod()
		change(pod)
		d, err := m.definition(testResolved(pod), map[string]string{"main": secret})
		if err != nil {
			t.Fatal(err)
		}
		return aws.ToString(d.Family)
	}
	one := family(func(*corev1.Pod) {}, "arn:1")
	if other := family(func(p *corev1.Pod) { p.Name, p.UID, p.Labels = "web-2", "other", map[string]string{"a": "b"} }, "arn:1"); other != one {
		t.Errorf("two replicas have the definitions %s and %s", one, other)
	}
	if other := family(func(*corev1.Pod) {}, "arn:2"); other == one {
		t.Error("pods with other secrets have one definition")
	}
	if other := family(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "registry.example/web:2" }, "arn:1"); other == one {
		t.Error("pods with other images have one definition")
	}
	a, errA := m.task(testPod(), "d")
	again, errB := m.task(testPod(), "d")
	next := testPod()
	next.UID = "other"
	b, errC := m.task(next, "d")
	if errA != nil || errB != nil || errC != nil || *a.ClientToken != *again.ClientToken || *a.ClientToken == *b.ClientToken {
		t.Errorf("got the tokens %s, %s and %s: want one for a pod, and others for others", *a.ClientToken, *again.ClientToken, *b.ClientToken)
	}
}

// TestSecretsHaveNames checks that the same content with the same key has the same name, and that the name
// reveals nothing without the key.
func TestSecretsHaveNames(t *testing.T) {
	m := testMapping(t)
	name := func(key, value string) string {
		r := testResolved(testPod())
		r.Containers["main"].Env[1].Value = value
		s, err := vaultOf(m, key).secrets(r)
		if err != nil {
			t.Fatal(err)
		}
		return s["main"].name
	}
	if a := name("k", "v"); a != name("k", "v") || a == name("k", "w") || a == name("l", "v") {
		t.Errorf("got %s, %s, %s and %s", a, name("k", "v"), name("k", "w"), name("l", "v"))
	}
}

// refusal returns the error with which the kit refuses a pod before it reads any object.
func refusal(c Config, pod *corev1.Pod) error {
	if lacks := c.Capabilities().Check(pod); len(lacks) > 0 {
		return errdefs.InvalidInput(capability.Message(lacks))
	}
	return refuse(pod)
}

// TestRefusals checks that a pod that Fargate cannot run is blamed on the pod, with the path of the field.
func TestRefusals(t *testing.T) {
	main := func(p *corev1.Pod) *corev1.Container { return &p.Spec.Containers[0] }
	for want, change := range map[string]func(*corev1.Pod){
		"spec.hostNetwork": func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"spec.volumes[0].hostPath": func(p *corev1.Pod) {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}
		},
		"spec.volumes[0].nfs.server: \"nfs.example\"": func(p *corev1.Pod) {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example", Path: "/"}}
		},
		"spec.volumes[0].nfs.server: \"fs-0123456789abcdef1\" is none of fileSystems": func(p *corev1.Pod) {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "fs-0123456789abcdef1.efs.eu-central-1.amazonaws.com", Path: "/"}}
		},
		"spec.volumes[0]: volume \"data\"": func(p *corev1.Pod) {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}
		},
		"spec.containers[0].name: vk-files":         func(p *corev1.Pod) { main(p).Name = filesName },
		"spec.containers[0].imagePullPolicy":        func(p *corev1.Pod) { main(p).ImagePullPolicy = corev1.PullNever },
		"readinessProbe.successThreshold: a health": func(p *corev1.Pod) { main(p).ReadinessProbe.SuccessThreshold = 2 },
		"of PLAIN is no UTF-8":                      func(p *corev1.Pod) { main(p).Env[0].Value = "\xff" },
		"spec.containers: 10 with": func(p *corev1.Pod) {
			p.Spec.RestartPolicy, p.Spec.Containers = corev1.RestartPolicyNever, append(p.Spec.Containers, make([]corev1.Container, 5)...)
		},
		"spec.containers[0].name: vk-wait":         func(p *corev1.Pod) { main(p).Name = waiterName },
		"spec.containers: 12":                      func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, make([]corev1.Container, 7)...) },
		"spec.terminationGracePeriodSeconds":       func(p *corev1.Pod) { *p.Spec.TerminationGracePeriodSeconds = 121 },
		"livenessProbe.exec: this node does it by": func(p *corev1.Pod) { main(p).LivenessProbe = main(p).ReadinessProbe },
		"startupProbe.terminationGracePeriodSeconds": func(p *corev1.Pod) {
			main(p).StartupProbe = &corev1.Probe{TerminationGracePeriodSeconds: new(int64(1))}
		},
		"readinessProbe.failureThreshold: 11": func(p *corev1.Pod) { main(p).ReadinessProbe.FailureThreshold = 11 },
		"securityContext.capabilities.add[0]": func(p *corev1.Pod) { main(p).SecurityContext.Capabilities.Add[0] = "NET_ADMIN" },
		"securityContext.runAsNonRoot":        func(p *corev1.Pod) { *p.Spec.SecurityContext.RunAsUser = 0 },
		"securityContext.runAsGroup":          func(p *corev1.Pod) { p.Spec.SecurityContext = nil },
		"resources.limits[nvidia.com/gpu]":    func(p *corev1.Pod) { main(p).Resources.Limits["nvidia.com/gpu"] = resource.MustParse("1") },
		"needs 17":                            func(p *corev1.Pod) { main(p).Resources.Requests = list("17", "1Gi") },
		"201 GiB of ephemeral storage": func(p *corev1.Pod) {
			p.Spec.Containers[1].Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("201Gi")
		},
		"annotations[" + AnnotationRole + "]":   func(p *corev1.Pod) { p.Annotations[AnnotationRole] = testRole + "s" },
		"names a variable that may be a secret": func(p *corev1.Pod) { main(p).Args = []string{"$$(PASSWORD) $(PASSWORD)"} },
		"spec.containers[0].ports[0].protocol":  func(p *corev1.Pod) { main(p).Ports[0].Protocol = corev1.ProtocolSCTP },
		"spec.containers[0].env: 66": func(p *corev1.Pod) {
			main(p).Env = append(main(p).Env, corev1.EnvVar{Name: "LONG", Value: "$(PASSWORD)" + strings.Repeat("x", 65<<10)})
		},
		"capacity-provider]: \"CHEAP\"": func(p *corev1.Pod) { p.Annotations[AnnotationCapacityProvider] = "CHEAP" },
	} {
		pod := testPod()
		change(pod)
		m, r := testMapping(t), testResolved(pod)
		err := refusal(m.config, pod)
		if err == nil {
			_, err = vaultOf(m, "k").secrets(r)
		}
		if err == nil {
			_, err = m.definition(r, map[string]string{"main": "arn:s"})
		}
		if err == nil {
			_, err = m.task(pod, "d")
		}
		if err == nil || !strings.Contains(err.Error(), want) || !errdefs.IsInvalidInput(err) {
			t.Errorf("got %v, want an error of the kind invalid-input with %q", err, want)
		}
	}
	if _, err := testMapping(t).definition(testResolved(testPod()), nil); err == nil {
		t.Error("a container is without its secret, and nobody says so")
	}
}

// TestSizes checks that the size of a task has room for all containers that run together, and for each init container together with
// the sidecars before it.
func TestSizes(t *testing.T) {
	pod := func(containers ...corev1.ResourceList) *corev1.PodSpec {
		s := &corev1.PodSpec{}
		for _, l := range containers {
			s.Containers = append(s.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Requests: l}})
		}
		return s
	}
	withInit := pod(list("250m", "512Mi"))
	withInit.InitContainers = []corev1.Container{
		{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Resources: corev1.ResourceRequirements{Requests: list("250m", "512Mi")}},
		{Resources: corev1.ResourceRequirements{Requests: list("1", "512Mi")}},
	}
	limited := pod(nil)
	limited.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("3Gi")}
	limited.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	for want, spec := range map[string]*corev1.PodSpec{
		"250/512":      pod(nil),
		"250/1024":     pod(list("100m", "513Mi")),
		"500/1024":     pod(list("251m", "1")),
		"500/4096":     pod(list("250m", "4Gi")),
		"1000/5120":    pod(list("250m", "5Gi")),
		"8000/20480":   pod(list("4", "8Gi"), list("1", "12Gi")),
		"16000/122880": pod(list("16", "120Gi")),
		"2000/4096":    withInit,
		"500/3072":     limited,
	} {
		size, storage, err := buy(&corev1.Pod{Spec: *spec})
		got := fmt.Sprintf("%d/%d", size.MilliCPU, size.Memory>>20)
		if err != nil || got != want || storage != 0 {
			t.Errorf("got %s, %d, %v, want %s", got, storage, err, want)
		}
	}
}

// TestStrategyOnlyWhereTheClusterNeedsOne checks that a pod on demand has a launch type unless the configuration
// names a capacity provider: ECS refuses a capacity provider that the cluster does not have.
func TestStrategyOnlyWhereTheClusterNeedsOne(t *testing.T) {
	for _, c := range []struct{ config, annotation, launch, strategy string }{
		{"", "", "FARGATE", ""}, {"", OnDemand, "FARGATE", ""}, {"", Spot, "", Spot},
		{OnDemand, "", "", OnDemand}, {OnDemand, OnDemand, "", OnDemand}, {OnDemand, Spot, "", Spot},
		{Spot, "", "", Spot}, {Spot, OnDemand, "FARGATE", ""}, {Spot, Spot, "", Spot},
	} {
		m, pod := testMapping(t), podOf("a", program.Program{})
		m.config.CapacityProvider = c.config
		pod.Annotations = map[string]string{AnnotationCapacityProvider: c.annotation}
		in, err := m.task(pod, "arn")
		if err != nil {
			t.Fatal(err)
		}
		strategy := ""
		for _, i := range in.CapacityProviderStrategy {
			strategy += aws.ToString(i.CapacityProvider)
		}
		if string(in.LaunchType) != c.launch || strategy != c.strategy {
			t.Errorf("configured %q, asked for %q: launch type %q and strategy %q, want %q and %q", c.config, c.annotation, in.LaunchType, strategy, c.launch, c.strategy)
		}
	}
}

// TestGracePeriodsThatFargateLacks checks grace periods outside the 2 to 120 seconds of ECS. Shorter ones are raised, and an event of
// the pod reports this. Longer ones are refused.
func TestGracePeriodsThatFargateLacks(t *testing.T) {
	c := cloudOf(t)
	conf, err := c.config("home")
	if err != nil {
		t.Fatal(err)
	}
	events := record.NewFakeRecorder(10)
	in := cli.ProviderInput{NodeName: "node"}
	in.Recorder = events
	p, err := newDriver(t.Context(), in, conf, quick)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.kit.UsePodObjects(values{})
	for asked, want := range map[int64]int32{0: 2, 1: 2, 2: 2, 120: 120} {
		pod := podOf(fmt.Sprintf("grace-%d", asked), program.Program{})
		pod.Spec.TerminationGracePeriodSeconds = &asked
		resolved, err := p.kit.Resolve(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		definition, err := p.mapping.definition(resolved, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := *definition.ContainerDefinitions[0].StopTimeout; got != want {
			t.Errorf("%d seconds are a stopTimeout of %d, want %d", asked, got, want)
		}
		if _, err := p.Create(t.Context(), resolved); err != nil {
			t.Errorf("%d seconds: %v", asked, err)
		}
		said := ""
		select {
		case said = <-events.Events:
		default:
		}
		if (said != "") != (asked < 2) || said != "" && !strings.Contains(said, "spec.terminationGracePeriodSeconds") {
			t.Errorf("%d seconds: the event says %q", asked, said)
		}
	}
}
