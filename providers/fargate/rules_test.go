// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestPublishedC20PortsAreDeclaredOnce: aws/amazon-ecs-agent#1220, "TCP host port '3000' is mapped multiple times in task."
func TestPublishedC20PortsAreDeclaredOnce(t *testing.T) {
	p := open(t, cloudOf(t))
	pod := podOf("web", program.Program{Stay: program.Forever})
	port := corev1.ContainerPort{ContainerPort: 3000}
	first := &pod.Spec.Containers[0]
	first.Ports = []corev1.ContainerPort{port, {ContainerPort: 3000, Protocol: corev1.ProtocolUDP}}
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "other", Image: "program", Args: first.Args, Ports: []corev1.ContainerPort{port, {ContainerPort: 3001}}})
	if err := p.kit.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	d, err := p.mapping.definition(testResolved(pod), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(d.ContainerDefinitions[0].PortMappings); got != 2 {
		t.Errorf("the first container declares %d ports, want 2", got)
	}
	if got := d.ContainerDefinitions[1].PortMappings; len(got) != 1 || *got[0].ContainerPort != 3001 {
		t.Errorf("the second container declares %v, want 3001 alone", got)
	}
}

// TestPublishedC21DefinitionsAreLimited: awsdocs/amazon-ecs-developer-guide#149, "Max allowed length is '65536' bytes."
func TestPublishedC21DefinitionsAreLimited(t *testing.T) {
	c := cloudOf(t)
	p := open(t, c)
	pod := podOf("web", program.Program{Stay: program.Forever})
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LONG", Value: strings.Repeat("x", 65<<10)}}
	err := p.kit.CreatePod(t.Context(), pod)
	if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "spec.containers: the task definition has") {
		t.Errorf("got %v, want an error of the kind invalid-input that names spec.containers", err)
	}
}

// TestPublishedC22RoleOfAwsFargate: virtual-kubelet/aws-fargate: fargate/pod.go reads the role of a task from iam.amazonaws.com/role.
func TestPublishedC22RoleOfAwsFargate(t *testing.T) {
	_, name, _ := strings.Cut(testRole, ":role/")
	for _, c := range []struct{ old, own, want, refused string }{
		{old: testRole, want: testRole},
		{old: name, want: testRole},
		{old: testRole, own: testRole, want: testRole},
		{old: "arn:aws:iam::123456789012:role/admin", refused: "metadata.annotations[" + AnnotationOldRole + "]"},
		{old: "admin", own: testRole, refused: "metadata.annotations[" + AnnotationOldRole + "]"},
	} {
		pod := testPod()
		pod.Annotations = map[string]string{AnnotationOldRole: c.old}
		if c.own != "" {
			pod.Annotations[AnnotationRole] = c.own
		}
		d, err := testMapping(t).definition(testResolved(pod), map[string]string{"main": "arn:s"})
		switch {
		case c.refused != "":
			if !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), c.refused+": ") {
				t.Errorf("%+v: got %v, want an error that begins with %s", c, err, c.refused)
			}
		case err != nil || d.TaskRoleArn == nil || *d.TaskRoleArn != c.want:
			t.Errorf("%+v: got %v, %v", c, d, err)
		}
	}
}
