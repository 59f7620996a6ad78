// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

const stubSecret = "canary-of-the-stub"

// stubObjects has one secret for variables, files and logins.
type stubObjects struct{}

func (stubObjects) ConfigMap(context.Context, *corev1.Pod, string) (*corev1.ConfigMap, error) {
	return nil, errdefs.NotFound("there are none")
}

func (stubObjects) Secret(context.Context, *corev1.Pod, string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"p": []byte(stubSecret)}}, nil
}

func (stubObjects) Container(_ context.Context, pod *corev1.Pod, _ string) (*corev1.Container, error) {
	c := pod.Spec.Containers[0].DeepCopy()
	for i := range c.Env {
		if c.Env[i].ValueFrom != nil {
			c.Env[i].Value, c.Env[i].ValueFrom = stubSecret, nil
		}
	}
	return c, nil
}

func (stubObjects) PullCredentials(context.Context, *corev1.Pod) ([]node.RegistryCredential, error) {
	return []node.RegistryCredential{{Registry: "private.example", Username: "user", Password: stubSecret}}, nil
}

// start opens a node on the stub, which runs until stop.
func (s *stub) start(t *testing.T) (p *provider, stop func()) {
	t.Helper()
	p, err := open(cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "aci"}}}, NodeName: "aci"}, Config{
		SubscriptionID: "sub-1", ResourceGroup: "pods", Region: "westeurope", ClusterName: "home",
		Cloud:       Cloud{Endpoint: s.url, Authority: s.url, Metrics: s.url, MetricsAudience: s.url, CAFile: s.caFile},
		Credentials: azlogin.Credentials{TenantID: "tenant-1", ClientID: "client-1", ClientSecret: config.Literal("secret")},
		Requests:    Requests{AtRest: 1 << 20},
	}, pace{busy: 20 * time.Millisecond, rest: 20 * time.Millisecond, follow: 20 * time.Millisecond, eager: true})
	if err != nil {
		t.Fatal(err)
	}
	p.UsePodObjects(stubObjects{})
	p.UsePullCredentials(stubObjects{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- p.RunInBackground(ctx) }()
	if err := p.Cache().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the work in the background: %v", err)
		}
	}
}

// stubPod returns a pod that takes a variable, a file and a login from a Secret.
func stubPod(uid string) *corev1.Pod {
	pod := programPod(uid, program.Program{Stay: program.Forever})
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "login"}}
	main := &pod.Spec.Containers[0]
	main.Image = "private.example/program"
	main.Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}}}
	main.VolumeMounts = []corev1.VolumeMount{{Name: "files", MountPath: "/files"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "files", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}
	return pod
}

// TestStub runs pods on a resource manager that is made only from the vendor's description: a create and a
// repeated create, a run, a delete, and the delete of a pod that left the cluster while no node ran. No answer
// has a secret, and no secret outlives its group.
func TestStub(t *testing.T) {
	s := startStub(t)
	p, stop := s.start(t)
	pod, orphan := stubPod("one"), stubPod("orphan")
	for _, one := range []*corev1.Pod{pod, pod, orphan} {
		if err := p.CreatePod(t.Context(), one.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range []*corev1.Pod{pod, orphan} {
		until(t, "pod "+one.Name+" to run", func() bool { return p.phase(one) == corev1.PodRunning })
	}
	groups, puts, wrong := s.names()
	if len(groups) != 2 || puts != 2 || len(wrong) > 0 {
		t.Errorf("there are the groups %v after %d creates, and what the description lacks is %q", groups, puts, wrong)
	}
	in, shown := s.has(stubSecret)
	encoded, shownEncoded := s.has(base64.StdEncoding.EncodeToString([]byte(stubSecret)))
	if len(in) != 2 || len(encoded) != 2 || shown || shownEncoded {
		t.Errorf("secrets are in %v and, encoded, in %v, and are shown: %t, %t", in, encoded, shown, shownEncoded)
	}
	log, err := p.GetContainerLogs(t.Context(), pod.Namespace, pod.Name, "main", api.ContainerLogOpts{})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := io.ReadAll(log)
	if err = errors.Join(err, log.Close()); err != nil || !strings.HasPrefix(string(lines), "a line of ") {
		t.Errorf("the log is %q, %v", lines, err)
	}
	deletes := func(p *provider, pod *corev1.Pod) {
		t.Helper()
		pod = pod.DeepCopy()
		pod.DeletionTimestamp = new(metav1.Now())
		if err := p.DeletePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		until(t, "pod "+pod.Name+" to be gone", func() bool {
			_, err := p.GetPod(t.Context(), pod.Namespace, pod.Name)
			return errdefs.IsNotFound(err)
		})
	}
	deletes(p, pod)
	stop()
	p, stop = s.start(t)
	defer stop()
	all, err := p.GetPods(t.Context())
	if err != nil || len(all) != 1 || all[0].UID != orphan.UID || all[0].Name != orphan.Name {
		t.Fatalf("after a restart there are the pods %v, %v", all, err)
	}
	deletes(p, all[0])
	if groups, _, wrong := s.names(); len(groups) > 0 || len(wrong) > 0 {
		t.Errorf("there are the groups %v, and what the description lacks is %q", groups, wrong)
	}
	if in, _ := s.has(stubSecret); len(in) > 0 {
		t.Errorf("secrets are left in %v", in)
	}
}
