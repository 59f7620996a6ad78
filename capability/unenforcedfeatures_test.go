// SPDX-License-Identifier: Apache-2.0

package capability_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// everyAcceptable is a pod that needs every acceptable feature.
const everyAcceptable = `
spec:
  dnsPolicy: None
  dnsConfig: {nameservers: [192.0.2.1]}
  hostname: h
  subdomain: s
  setHostnameAsFQDN: true
  hostAliases: [{ip: 192.0.2.1, hostnames: [a]}]
  hostUsers: false
  shareProcessNamespace: true
  runtimeClassName: sandbox
  securityContext:
    runAsUser: 1
    runAsGroup: 1
    runAsNonRoot: true
    supplementalGroups: [1]
    supplementalGroupsPolicy: Strict
    fsGroup: 1
    sysctls: [{name: a.b, value: "1"}]
    seLinuxOptions: {level: s0}
    seccompProfile: {type: RuntimeDefault}
    windowsOptions: {runAsUserName: a}
  containers:
  - name: a
    restartPolicy: Always
    restartPolicyRules: [{action: Restart}]
    stdin: true
    tty: true
    terminationMessagePath: /m
    terminationMessagePolicy: FallbackToLogsOnError
    ports: [{containerPort: 80, hostPort: 80}, {containerPort: 81, hostPort: 82}]
    livenessProbe: {exec: {command: [a]}, periodSeconds: 3}
    readinessProbe: {httpGet: {port: 80}}
    startupProbe: {grpc: {port: 80}}
    lifecycle: {stopSignal: SIGINT, postStart: {sleep: {seconds: 1}}, preStop: {exec: {command: [a]}}}
    volumeMounts: [{name: v, mountPath: /v, mountPropagation: HostToContainer, recursiveReadOnly: Enabled}]
    securityContext:
      runAsUser: 1
      runAsGroup: 1
      runAsNonRoot: true
      readOnlyRootFilesystem: true
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL]}
      seccompProfile: {type: RuntimeDefault}
      appArmorProfile: {type: RuntimeDefault}
  initContainers:
  - {name: i, securityContext: {seccompProfile: {type: RuntimeDefault}}}
`

// podOf parses a pod.
func podOf(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// TestAcceptedFeaturesAreTakenOutOfThePod: LeaveOut removes exactly the fields that need features which the
// backend lacks.
func TestAcceptedFeaturesAreTakenOutOfThePod(t *testing.T) {
	pod := podOf(t, everyAcceptable)
	d := capability.Only(capability.InitContainers).Accept(capability.Acceptable()...)
	if refused := d.Check(pod); refused != nil {
		t.Errorf("accepted fields are refused: %v", refused)
	}
	asked := map[capability.Feature]bool{}
	for _, u := range d.Unenforced(pod) {
		asked[u.Feature] = true
	}
	asked[capability.HostPortMapping] = true // it has the same path as HostPorts
	asked[capability.MountOptions] = true    // older versions of the API have no such field
	for _, f := range capability.Acceptable() {
		if !asked[f] {
			t.Errorf("%s is not said to be unenforced", f)
		}
	}
	d.LeaveOut(pod)
	for _, need := range capability.Needs(pod) {
		if need.Feature != capability.InitContainers {
			t.Errorf("the pod asks for %s still", need.Path)
		}
	}
	c := pod.Spec.Containers[0]
	if c.LivenessProbe != nil || c.ReadinessProbe != nil || c.StartupProbe != nil {
		t.Errorf("probes without an action are left: %v %v %v", c.LivenessProbe, c.ReadinessProbe, c.StartupProbe)
	}
	if len(c.Ports) != 2 || c.Ports[1].ContainerPort != 81 || len(c.VolumeMounts) != 1 || c.VolumeMounts[0].MountPath != "/v" || len(pod.Spec.InitContainers) != 1 {
		t.Errorf("more than the fields is gone: %+v", pod.Spec)
	}
}

// TestAcceptedByDefault: where each pod is a virtual machine, a restricted pod is accepted. Other security fields are only omitted if their feature
// is listed.
func TestAcceptedByDefault(t *testing.T) {
	main := func(security string) string {
		return "{spec: {containers: [{name: a, securityContext: " + security + "}]}}"
	}
	const at = "spec.containers[0].securityContext."
	for name, tt := range map[string]struct {
		pod                 string
		refused, unenforced []string
	}{
		"restricted": {main("{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}"),
			nil, []string{at + "capabilities.drop", at + "allowPrivilegeEscalation", at + "seccompProfile"}},
		"an own profile":      {main("{seccompProfile: {type: Localhost, localhostProfile: a.json}}"), []string{at + "seccompProfile"}, nil},
		"added capabilities":  {main("{capabilities: {add: [NET_ADMIN], drop: [ALL]}}"), []string{at + "capabilities.add"}, []string{at + "capabilities.drop"}},
		"privileged":          {main("{privileged: true}"), []string{at + "privileged"}, nil},
		"not as root":         {main("{runAsNonRoot: true}"), []string{at + "runAsNonRoot"}, nil},
		"a read-only root":    {main("{readOnlyRootFilesystem: true}"), []string{at + "readOnlyRootFilesystem"}, nil},
		"a group of files":    {"{spec: {securityContext: {fsGroup: 1}}}", []string{"spec.securityContext.fsGroup"}, nil},
		"a profile for a pod": {"{spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}}}", nil, []string{"spec.securityContext.seccompProfile"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod, d := podOf(t, tt.pod), capability.Only().Accept(capability.OwnMachine()...)
			if got := paths(d.Check(pod)); !slices.Equal(got, tt.refused) {
				t.Errorf("refused are %q, want %q", got, tt.refused)
			}
			if got := paths(d.Unenforced(pod)); !slices.Equal(got, tt.unenforced) {
				t.Errorf("unenforced are %q, want %q", got, tt.unenforced)
			}
			before := pod.DeepCopy()
			if capability.Only().LeaveOut(pod); !reflect.DeepEqual(before, pod) {
				t.Errorf("a declaration that accepts nothing changes the pod: %s", cmp.Diff(before, pod))
			}
		})
	}
}

// TestOwnProfileAndPowerAreNeverAccepted: fields that add privileges, or select the pod's own profile, are refused, even if their feature is
// accepted.
func TestOwnProfileAndPowerAreNeverAccepted(t *testing.T) {
	d := capability.Only().Accept(capability.Features()...)
	for _, security := range []string{
		"{seccompProfile: {type: Localhost, localhostProfile: a.json}}", "{appArmorProfile: {type: Localhost, localhostProfile: a}}",
		"{capabilities: {add: [NET_ADMIN]}}", "{privileged: true}", "{procMount: Unmasked}",
	} {
		if pod := podOf(t, "{spec: {containers: [{name: a, securityContext: "+security+"}]}}"); len(d.Check(pod)) != 1 || d.Unenforced(pod) != nil {
			t.Errorf("%s: refused are %v, and left out %v", security, d.Check(pod), d.Unenforced(pod))
		}
	}
}

// TestFieldsOfAFeatureThatIsThere: a backend may support a feature except for some fields.
func TestFieldsOfAFeatureThatIsThere(t *testing.T) {
	pod := podOf(t, "{spec: {containers: [{name: a, securityContext: {runAsUser: 1, capabilities: {add: [A], drop: [B]}}}]}}")
	d := capability.All().LacksFields("they are only added", capability.Capabilities, "capabilities.drop")
	const want = "this node cannot run the pod: spec.containers[0].securityContext.capabilities.drop: they are only added"
	if got := capability.Message(d.Check(pod)); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	d = d.Accept(capability.Capabilities, capability.RunAsUser)
	if got := d.Accepted(); !slices.Equal(got, []capability.Feature{capability.Capabilities}) {
		t.Errorf("accepted is %v, want what the backend does not have", got)
	}
	if d.LeaveOut(pod); len(pod.Spec.Containers[0].SecurityContext.Capabilities.Add) != 1 || pod.Spec.Containers[0].SecurityContext.RunAsUser == nil {
		t.Errorf("what the backend has is left out: %v", pod.Spec.Containers[0].SecurityContext)
	}
}

func paths(of []capability.Unsupported) (all []string) {
	for _, u := range of {
		all = append(all, u.Path)
	}
	return all
}
