// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// renewed are objects whose first token is to be replaced soon. The second token stays, because a client waits
// until a Variable no longer changes.
type renewed struct {
	objects
	count *atomic.Int64
}

func (r renewed) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	if n := r.count.Add(1); n > 1 {
		return node.PodToken{Token: fmt.Sprintf("token-%d\n", n), RefreshAt: time.Now().Add(time.Hour)}, nil
	}
	return node.PodToken{Token: "token-1\n", RefreshAt: time.Now().Add(2 * time.Second)}, nil
}

// TestTokensAreRenewed checks that a container sees the new token in the file of the old one.
func TestTokensAreRenewed(t *testing.T) {
	h := openHome(t, sharedAgent(t).config("renewed"), objects{})
	h.UsePodTokens(renewed{count: &atomic.Int64{}})
	pod := shellPod("renewed", DriverExec, "trap 'exit 0' TERM; while :; do cat /keys/token; sleep 0.1; done")
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "keys", MountPath: "/keys"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "keys", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
	}}}}
	h.create(pod)
	h.until(pod, "running", phase(corev1.PodRunning))
	if !await(t, func() bool { return strings.Contains(h.log(pod), "token-2") }) {
		t.Error("the container saw no second token in a minute")
	}
	h.remove(pod)
}

// TestMountsWhereADirectoryIs checks mounts over existing directories: a Secret at /secrets, where Nomad has its
// own directory, and an emptyDir at a directory of the chroot.
func TestMountsWhereADirectoryIs(t *testing.T) {
	h := openHome(t, sharedAgent(t).config("mounts"), objects{secret: map[string][]byte{"s": []byte(canary)}})
	pod := shellPod("mounts", DriverExec, "until cat /etc/said 2>/dev/null; do sleep 0.1; done; cat /secrets/s; "+forever)
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = []corev1.VolumeMount{{Name: "keys", MountPath: "/secrets"}, {Name: "data", MountPath: "/etc"}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}},
		{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	other := *c.DeepCopy()
	other.Name, other.Command[2], other.VolumeMounts = "other", "echo shared > /etc/said; "+forever, other.VolumeMounts[1:]
	pod.Spec.Containers = append(pod.Spec.Containers, other)
	h.create(pod)
	h.until(pod, "running", phase(corev1.PodRunning))
	if !await(t, func() bool { return h.log(pod) == "shared\n"+canary }) {
		t.Errorf("the container says %q, want what the other wrote and the secret", h.log(pod))
	}
	h.remove(pod)
}

// TestRequestsOfAPod checks that the life of a pod costs the number of requests that the README states.
func TestRequestsOfAPod(t *testing.T) {
	a := sharedAgent(t)
	l, err := newLine(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.server.Close)
	c := a.config("requests")
	c.Address, c.Network = l.server.URL, NetworkHost
	h := openHome(t, c, objects{secret: map[string][]byte{"p": []byte(canary)}})
	made := func() (out []string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, r := range l.requests {
			if r != "GET /v1/nodes" { // these requests wait for changes of clients and do not belong to the pod
				out = append(out, strings.TrimRight(strings.ReplaceAll(r, h.d.store.owner.prefix(), ""), "0123456789abcdef-"))
			}
		}
		slices.Sort(out)
		return out
	}
	atRest := []string{"GET /v1/allocations", "GET /v1/evaluations", "GET /v1/event/stream", "GET /v1/jobs", "GET /v1/vars"}
	if !await(t, func() bool { return slices.Equal(made(), atRest) }) {
		t.Fatalf("a node without pods asks %q, want %q", made(), atRest)
	}
	plain, secret := shellPod("plain", DriverRawExec, forever), shellPod("secret", DriverRawExec, forever)
	secret.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "P", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}}}
	for pod, want := range map[*corev1.Pod]int{plain: 3, secret: 5} {
		l.set(func() { l.requests = nil })
		pod.Spec.TerminationGracePeriodSeconds = nil
		h.create(pod)
		h.until(pod, "running", phase(corev1.PodRunning))
		h.remove(pod)
		if got := made(); len(got) != want {
			t.Errorf("pod %s cost the requests %q, want %d", pod.Name, got, want)
		}
	}
}

// TestVariableThatIsThere checks that Nomad refuses a second Variable at the same path, and keeps the first.
func TestVariableThatIsThere(t *testing.T) {
	c, err := newClient(sharedAgent(t).config("there"))
	if err != nil {
		t.Fatal(err)
	}
	v := &nomadapi.Variable{Path: "nomad/jobs/vk-there", Items: map[string]string{"a": "1"}}
	if err := c.putNew(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	v.Items = map[string]string{"a": "2"}
	if err := c.putNew(t.Context(), v); !errors.Is(err, errVariable) {
		t.Errorf("got %v, want that the Variable exists", err)
	}
	if got, err := c.variable(t.Context(), v.Path); err != nil || got.Items["a"] != "1" {
		t.Errorf("got %v, %v, want the first one", got, err)
	}
	if err := c.removeVariable(t.Context(), v.Path, 0); err != nil {
		t.Error(err)
	}
}
