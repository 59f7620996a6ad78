// SPDX-License-Identifier: Apache-2.0

package capability_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// everybodys lists fields by the name of their type. Every backend must support these fields, or the node, the scheduler or the API server handles
// them.
var everybodys = map[string][]string{
	"PodSpec": {
		"terminationGracePeriodSeconds", "activeDeadlineSeconds", "nodeSelector", "serviceAccountName", "serviceAccount",
		"automountServiceAccountToken", "nodeName", "imagePullSecrets", "affinity", "schedulerName", "tolerations", "priorityClassName",
		"priority", "readinessGates", "enableServiceLinks", "preemptionPolicy", "overhead", "topologySpreadConstraints", "os",
		"schedulingGates", "schedulingGroup", "workloadRef", "evictionResponders", "containers",
	},
	"Container":          {"name", "image", "command", "args", "workingDir", "envFrom", "imagePullPolicy", "resizePolicy", "stdinOnce"},
	"ContainerPort":      {"name", "containerPort", "protocol", "hostIP"},
	"VolumeMount":        {"name", "readOnly", "mountPath"},
	"PodSecurityContext": {"fsGroupChangePolicy", "seLinuxChangePolicy"},
}

// TestEveryFieldOfAPodIsSomebodys checks every field of a pod in the API. Without this test, a new field of a
// later version would be ignored silently.
func TestEveryFieldOfAPodIsSomebodys(t *testing.T) {
	for _, tt := range []struct {
		of    any
		place func(*corev1.PodSpec, reflect.Value)
	}{
		{corev1.PodSpec{}, func(s *corev1.PodSpec, v reflect.Value) { *s = v.Interface().(corev1.PodSpec) }},
		{corev1.Container{}, func(s *corev1.PodSpec, v reflect.Value) {
			s.Containers = []corev1.Container{v.Interface().(corev1.Container)}
		}},
		{corev1.PodSecurityContext{}, func(s *corev1.PodSpec, v reflect.Value) {
			c := v.Interface().(corev1.PodSecurityContext)
			s.SecurityContext = &c
		}},
		{corev1.SecurityContext{}, func(s *corev1.PodSpec, v reflect.Value) {
			c := v.Interface().(corev1.SecurityContext)
			s.Containers = []corev1.Container{{SecurityContext: &c}}
		}},
		{corev1.VolumeMount{}, func(s *corev1.PodSpec, v reflect.Value) {
			s.Containers = []corev1.Container{{VolumeMounts: []corev1.VolumeMount{v.Interface().(corev1.VolumeMount)}}}
		}},
		{corev1.VolumeSource{}, func(s *corev1.PodSpec, v reflect.Value) {
			s.Volumes = []corev1.Volume{{VolumeSource: v.Interface().(corev1.VolumeSource)}}
		}},
		{corev1.ContainerPort{}, func(s *corev1.PodSpec, v reflect.Value) {
			s.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{v.Interface().(corev1.ContainerPort)}}}
		}},
		{corev1.Lifecycle{}, func(s *corev1.PodSpec, v reflect.Value) {
			l := v.Interface().(corev1.Lifecycle)
			s.Containers = []corev1.Container{{Lifecycle: &l}}
		}},
	} {
		kind := reflect.TypeOf(tt.of)
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			asks := slices.ContainsFunc(fillings(kind, i), func(v reflect.Value) bool {
				pod := &corev1.Pod{}
				tt.place(&pod.Spec, v)
				return len(capability.Needs(pod)) > 0
			})
			if shared := slices.Contains(everybodys[kind.Name()], name); asks == shared {
				t.Errorf("%s.%s: a feature asks for it: %t, and everybody has to respect it: %t; want exactly one", kind.Name(), name, asks, shared)
			}
		}
	}
}

// fillings returns values of a struct with only the given field set, in several ways.
func fillings(kind reflect.Type, field int) []reflect.Value {
	filler := randfill.NewWithSeed(1).NilChance(0).NumElements(1, 1).MaxDepth(5).Funcs(
		func(p *corev1.ContainerRestartPolicy, _ randfill.Continue) {
			*p = corev1.ContainerRestartPolicyOnFailure
		},
		func(p *corev1.RestartPolicy, _ randfill.Continue) { *p = corev1.RestartPolicyNever },
		func(p *corev1.Container, _ randfill.Continue) { *p = corev1.Container{Name: "c"} },
		func(p *corev1.DNSPolicy, _ randfill.Continue) { *p = corev1.DNSNone },
		func(p *corev1.TerminationMessagePolicy, _ randfill.Continue) {
			*p = corev1.TerminationMessageFallbackToLogsOnError
		},
		func(p *corev1.RecursiveReadOnlyMode, _ randfill.Continue) { *p = corev1.RecursiveReadOnlyEnabled },
	)
	var all []reflect.Value
	for range 6 { // a bool has only two values
		v := reflect.New(kind).Elem()
		filler.Fill(v.Field(field).Addr().Interface())
		all = append(all, v)
	}
	return all
}

func TestNeedsNameTheirFields(t *testing.T) {
	const pod = `
spec:
  hostPID: true
  volumes:
  - {name: data, hostPath: {path: /data}}
  - name: token
    projected:
      sources:
      - serviceAccountToken: {path: token}
      - configMap: {name: ca}
  initContainers:
  - {name: proxy, restartPolicy: Always}
  - {name: first}
  containers:
  - name: main
    ports: [{containerPort: 80}, {containerPort: 81, hostPort: 81}, {containerPort: 82, hostPort: 8082}]
    volumeMounts: [{name: data, mountPath: /d, subPath: sub}]
    livenessProbe: {httpGet: {port: 80}}
    securityContext: {privileged: true, capabilities: {drop: [ALL]}}
`
	var p corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(pod), &p); err != nil {
		t.Fatal(err)
	}
	want := []capability.Need{
		{Feature: capability.HostPath, Path: "spec.volumes[0].hostPath"},
		{Feature: capability.TokenVolumes, Path: "spec.volumes[1].projected.sources[0].serviceAccountToken"},
		{Feature: capability.ObjectVolumes, Path: "spec.volumes[1].projected.sources[1]"},
		{Feature: capability.Sidecars, Path: "spec.initContainers[0].restartPolicy"},
		{Feature: capability.InitContainers, Path: "spec.initContainers[1]"},
		{Feature: capability.HostPorts, Path: "spec.containers[0].ports[1].hostPort"},
		{Feature: capability.HostPorts, Path: "spec.containers[0].ports[2].hostPort"},
		{Feature: capability.HostPortMapping, Path: "spec.containers[0].ports[2].hostPort"},
		{Feature: capability.SubPath, Path: "spec.containers[0].volumeMounts[0].subPath"},
		{Feature: capability.NetworkProbes, Path: "spec.containers[0].livenessProbe.httpGet"},
		{Feature: capability.Privileged, Path: "spec.containers[0].securityContext.privileged"},
		{Feature: capability.Capabilities, Path: "spec.containers[0].securityContext.capabilities.drop"},
		{Feature: capability.HostNamespaces, Path: "spec.hostPID"},
	}
	if diff := cmp.Diff(want, capability.Needs(&p)); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
}

// TestPodInTheNetworkOfTheNodeNeedsNoHostPorts: the API server sets a host port for each port of a pod with
// hostNetwork, so these host ports need no feature.
func TestPodInTheNetworkOfTheNodeNeedsNoHostPorts(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{
		Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}},
	}}}}
	want := []capability.Need{{Feature: capability.HostNetwork, Path: "spec.hostNetwork"}}
	if diff := cmp.Diff(want, capability.Needs(pod)); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
}

// TestOneReasonForAField: a mapped host port needs two features, and a refusal gives only one reason.
func TestOneReasonForAField(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}}}}}
	got := capability.Message(capability.All().Lacks("there are none", capability.HostPorts, capability.HostPortMapping).Check(pod))
	if want := "this node cannot run the pod: spec.containers[0].ports[0].hostPort: there are none"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	same := pod.DeepCopy()
	same.Spec.Containers[0].Ports[0].HostPort = 80
	if left := capability.All().Lacks("", capability.HostPortMapping).Check(same); left != nil {
		t.Errorf("a host port that is the container's own is refused: %v", left)
	}
}

func TestPlainPodNeedsNothing(t *testing.T) {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "main", Image: "image", TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &yes},
		}},
		DNSPolicy: corev1.DNSClusterFirst, SecurityContext: &corev1.PodSecurityContext{}, RestartPolicy: corev1.RestartPolicyAlways, EnableServiceLinks: &yes,
	}}
	if needs := capability.Needs(pod); len(needs) > 0 {
		t.Errorf("a pod of defaults needs %v, want nothing", needs)
	}
}

func TestCheckNamesAllFieldsAtOnce(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		HostNetwork: true, HostPID: true,
		Containers: []corev1.Container{{Name: "main", TTY: true}},
	}}
	d := capability.All().Lacks("containers run on other machines", capability.HostNetwork).Lacks("", capability.HostNamespaces)
	got := capability.Message(d.Check(pod))
	want := "this node cannot run the pod: spec.hostNetwork: containers run on other machines; spec.hostPID: the backend has no HostNamespaces"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if left := capability.All().Check(pod); left != nil {
		t.Errorf("a backend with everything refuses %v", left)
	}
	if left := capability.Only(capability.InteractiveContainers).Check(pod); len(left) != 2 {
		t.Errorf("a backend with one feature refuses %v, want two fields", left)
	}
}

func TestTable(t *testing.T) {
	got := capability.Table(
		capability.Named{Name: "a", Declaration: capability.All().Note("only on Tuesdays", capability.Sysctls),
			Proven: map[capability.Feature]bool{capability.DNS: true}},
		capability.Named{Name: "b", Declaration: capability.Only().Lacks("there is no kernel", capability.Sysctls),
			Proven: map[capability.Feature]bool{capability.DNS: true}})
	got += capability.Table(capability.Named{Name: "b", Declaration: capability.Only(capability.DNS).Lacks("there is no kernel", capability.Sysctls)})
	for _, want := range []string{
		"| Feature | Asked for by | a | b |\n|---|---|---|---|\n",
		"| Sysctls | `sysctls` | ○ | – |\n",
		"| HostPath | volumes: `hostPath` | ○ | – |\n",
		"| DNS | `dnsPolicy: None`, `dnsConfig` | ● | – |\n",
		"| Feature | Asked for by | b | Note |\n|---|---|---|---|\n",
		"| Sysctls | `sysctls` | no | there is no kernel |\n",
		"| DNS | `dnsPolicy: None`, `dnsConfig` | declared |  |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
	for _, f := range capability.Features() {
		if !strings.Contains(got, "| "+string(f)+" |") {
			t.Errorf("the table lacks %s", f)
		}
	}
}

// TestHostPortsMeantMappedOnes: a declaration of HostPorts from before the feature HostPortMapping existed
// includes HostPortMapping.
func TestHostPortsMeantMappedOnes(t *testing.T) {
	for name, test := range map[string]struct {
		declared capability.Declaration
		want     bool
	}{
		"HostPorts by name":        {capability.Only(capability.HostPorts), true},
		"neither":                  {capability.Only(), false},
		"HostPorts without it":     {capability.Only(capability.HostPorts).Lacks("one network", capability.HostPortMapping), false},
		"it without the other one": {capability.Only(capability.HostPortMapping), true},
	} {
		if got := test.declared.Has(capability.HostPortMapping); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestJobsAreRefusedByTheirRestartPolicy: a backend that restarts every container refuses pods that must end. The refusal names the field. Other pods
// are accepted.
func TestJobsAreRefusedByTheirRestartPolicy(t *testing.T) {
	lacking := capability.Only().Lacks("it restarts every container", capability.RunToCompletion)
	for policy, refused := range map[corev1.RestartPolicy]bool{"": false, corev1.RestartPolicyAlways: false, corev1.RestartPolicyOnFailure: true, corev1.RestartPolicyNever: true} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: policy}}
		got := lacking.Check(pod)
		if (len(got) > 0) != refused {
			t.Errorf("%q: refused for %v", policy, got)
		}
		if refused && capability.Message(got) != "this node cannot run the pod: spec.restartPolicy: it restarts every container" {
			t.Errorf("%q: %q", policy, capability.Message(got))
		}
		for name, d := range map[string]capability.Declaration{"one from before": capability.Only(), "all": capability.All(), "by name": capability.Only(capability.RunToCompletion)} {
			if got := d.Check(pod); len(got) > 0 {
				t.Errorf("%q: %s refuses it: %v", policy, name, got)
			}
		}
	}
}

// TestTableSaysWhatIsAdmitted: the table agrees with Has for a feature that a declaration has without naming it.
func TestTableSaysWhatIsAdmitted(t *testing.T) {
	got := capability.Table(capability.Named{Name: "old", Declaration: capability.Only(capability.HostPorts)},
		capability.Named{Name: "without", Declaration: capability.Only(capability.HostPorts).Lacks("", capability.RunToCompletion, capability.HostPortMapping)})
	for _, f := range []capability.Feature{capability.RunToCompletion, capability.HostPortMapping} {
		i := strings.Index(got, "| "+string(f)+" |")
		row, _, _ := strings.Cut(got[max(0, i):], "\n")
		if !strings.HasSuffix(row, "| ○ | – |") {
			t.Errorf("the row is %q", row)
		}
	}
}
