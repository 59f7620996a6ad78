// SPDX-License-Identifier: Apache-2.0

package podenv

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

func TestResolveOrderAndReferences(t *testing.T) {
	objects := &memoryObjects{
		ConfigMaps: map[string]map[string]string{
			"base":  {"b": "1", "a": "2", "HOST": "from-base", "path.to": "/"},
			"later": {"a": "later", "RAW": "$(HOST)"},
		},
		Secrets: map[string]map[string]string{"pw": {"PASSWORD": "s3cret", "BYTES": "\xff\x00"}},
	}
	lister := services(t, service("shop", "db", "10.0.0.5", corev1.ServicePort{Port: 5432}))
	for _, tt := range []struct {
		name    string
		envFrom []corev1.EnvFromSource
		env     []corev1.EnvVar
		command []string
		want    string // without service variables
		wantCmd []string
	}{
		{name: "nothing", want: ""},
		{
			name: "declaration order",
			env:  []corev1.EnvVar{literal("Z", "1"), literal("A", "2"), literal("M", "")},
			want: "Z=1\nA=2\nM=\n",
		},
		{
			name: "a name that is declared twice counts where it is declared last",
			env:  []corev1.EnvVar{literal("A", "1"), literal("B", "$(A)"), literal("A", "2"), literal("C", "$(A)")},
			want: "B=1\nA=2\nC=2\n",
		},
		{
			name:    "envFrom: keys in order, later sources win, prefixes",
			envFrom: []corev1.EnvFromSource{fromConfigMap("", "base", nil), fromConfigMap("", "later", nil), fromSecret("P_", "pw", nil)},
			want:    "HOST=from-base\nb=1\npath.to=/\nRAW=$(HOST)\na=later\nP_BYTES=\xff\x00\nP_PASSWORD=s3cret\n",
		},
		{
			name:    "env wins over envFrom and sees it",
			envFrom: []corev1.EnvFromSource{fromConfigMap("", "base", nil)},
			env:     []corev1.EnvVar{literal("HOST", "$(HOST)!"), literal("URL", "http://$(HOST)/$(a)")},
			want:    "a=2\nb=1\npath.to=/\nHOST=from-base!\nURL=http://from-base!/2\n",
		},
		{
			name: "references see what is declared before, not after",
			env:  []corev1.EnvVar{literal("A", "$(B)"), literal("B", "$(A)$$(A)")},
			want: "A=$(B)\nB=$(B)$(A)\n",
		},
		{
			name: "values from objects are not expanded, but can be referred to",
			env:  []corev1.EnvVar{configMapKey("X", "later", "RAW", nil), literal("Y", "[$(X)]"), secretKey("Z", "pw", "PASSWORD", nil)},
			want: "X=$(HOST)\nY=[$(HOST)]\nZ=s3cret\n",
		},
		{
			name:    "service variables can be referred to, and hidden",
			env:     []corev1.EnvVar{literal("DB", "$(DB_SERVICE_HOST):$(DB_SERVICE_PORT)"), literal("DB_PORT", "mine")},
			command: []string{"run", "--db=$(DB)", "$(DB_PORT)", "$(DB_SERVICE_HOST)", "$(NOPE)", "$$(DB)"},
			want:    "DB=10.0.0.5:5432\nDB_PORT=mine\n",
			wantCmd: []string{"run", "--db=10.0.0.5:5432", "mine", "10.0.0.5", "$(NOPE)", "$(DB)"},
		},
		{
			name:    "an address that is not known is left to the provider, with the references to it",
			envFrom: []corev1.EnvFromSource{fromConfigMap("POD_", "base", nil)},
			env:     []corev1.EnvVar{fieldRef("POD_HOST", "status.podIP"), literal("URL", "$(POD_HOST):80/$(POD_a)")},
			command: []string{"$(POD_HOST)", "$(URL)"},
			want:    "POD_a=2\nPOD_b=1\nPOD_path.to=/\nPOD_HOST<-status.podIP\nURL=$(POD_HOST):80/2\n",
			wantCmd: []string{"$(POD_HOST)", "$(POD_HOST):80/2"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := podWith(corev1.Container{EnvFrom: tt.envFrom, Env: tt.env, Command: tt.command, Args: append([]string(nil), tt.command...)})
			if err := Resolve(t.Context(), Config{Objects: objects, Services: lister}, pod); err != nil {
				t.Fatal(err)
			}
			c := pod.Spec.Containers[0]
			var own []corev1.EnvVar
			serviceCount := 0
			for _, v := range c.Env {
				if strings.HasPrefix(v.Name, "DB_") && v.Value != "mine" {
					serviceCount++
				} else if serviceCount > 0 {
					t.Errorf("%s comes after a service variable", v.Name)
				} else {
					own = append(own, v)
				}
			}
			if diff := cmp.Diff(tt.want, lines(own)); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantCmd, c.Command); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantCmd, c.Args); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
			if c.EnvFrom == nil || len(c.EnvFrom) != 0 {
				t.Errorf("EnvFrom = %#v, want empty and not nil", c.EnvFrom)
			}
		})
	}
}

func TestResolveAllContainers(t *testing.T) {
	pod := podWith(corev1.Container{Env: []corev1.EnvVar{literal("A", "app"), literal("B", "$(A)")}})
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Env: []corev1.EnvVar{literal("A", "init"), secretKey("B", "pw", "k", nil)}, Args: []string{"$(A)"}}}
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "debug", Env: []corev1.EnvVar{literal("A", "debug"), secretKey("B", "pw", "k", nil)}, Command: []string{"$(B)"}}}}
	objects := &memoryObjects{Secrets: map[string]map[string]string{"pw": {"k": "v"}}}
	if err := Resolve(t.Context(), Config{Objects: objects}, pod); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][2]string{
		"A=init\nB=v\n":  {lines(pod.Spec.InitContainers[0].Env), pod.Spec.InitContainers[0].Args[0]},
		"A=app\nB=app\n": {lines(pod.Spec.Containers[0].Env), "app"},
		"A=debug\nB=v\n": {lines(pod.Spec.EphemeralContainers[0].Env), pod.Spec.EphemeralContainers[0].Command[0]},
	} {
		if got[0] != name {
			t.Errorf("environment %q, want %q", got[0], name)
		}
	}
	if got := pod.Spec.InitContainers[0].Args[0] + pod.Spec.EphemeralContainers[0].Command[0]; got != "initv" {
		t.Errorf("args and command %q, want %q", got, "initv")
	}
	if objects.Reads != 1 {
		t.Errorf("the Secret was read %d times, want once for the whole pod", objects.Reads)
	}
}

func TestResolveRefusesFileKeyRef(t *testing.T) {
	pod := podWith(corev1.Container{Env: []corev1.EnvVar{
		literal("A", "1"),
		{Name: "F", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "v", Path: "p", Key: "k"}}},
	}})
	err := Resolve(t.Context(), Config{}, pod)
	if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "spec.containers[0].env[1].valueFrom.fileKeyRef") {
		t.Errorf("error %v, want invalid input that names the field", err)
	}
}
