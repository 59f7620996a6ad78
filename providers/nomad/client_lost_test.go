// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// fast is a configuration with which a server notices within seconds that a client is away.
const fast = `
server {
  heartbeat_grace = "1s"
  min_heartbeat_ttl = "1s"
}
`

// pair starts two agents: a server, and a client that a test can lose.
func pair(t *testing.T) (server, client *agent) {
	t.Helper()
	server = newAgent(t, agent{acl: true, server: true, extra: fast})
	return server, newAgent(t, agent{acl: true, joins: server})
}

func unknown(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && p.Status.Reason == reasonNodeLost && !isReady(p)
}

func isReady(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].Ready
}

// TestClientComesBack checks that the pods of a client that is away are not ready, and that the same pods go on
// when the client is back.
func TestClientComesBack(t *testing.T) {
	server, client := pair(t)
	h := openHome(t, server.config("comes-back"), objects{})
	pods := []*corev1.Pod{shellPod("raw", DriverRawExec, forever), shellPod("own", DriverExec, forever)}
	var before []*corev1.Pod
	for _, pod := range pods {
		h.create(pod)
		before = append(before, h.until(pod, "ready", isReady))
	}
	client.kill()
	for _, pod := range pods {
		got := h.until(pod, "not ready", unknown)
		if !strings.Contains(got.Status.Message, "is disconnected") {
			t.Errorf("pod %s says %q, want that its client is disconnected", pod.Name, got.Status.Message)
		}
	}
	if err := h.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "no client of Nomad is ready") {
		t.Errorf("Ping without a client: got %v, want that there is none", err)
	}
	late := shellPod("late", DriverRawExec, forever)
	if err := h.CreatePod(t.Context(), late); err == nil || !strings.Contains(err.Error(), "no client of Nomad is ready") || errdefs.IsInvalidInput(err) {
		t.Errorf("CreatePod without a client: got %v, want that there is none", err)
	}
	if err := client.start(); err != nil {
		t.Fatalf("%v\n%s", err, client.log())
	}
	for i, pod := range pods {
		after := h.until(pod, "ready again", func(p *corev1.Pod) bool { return isReady(p) && p.Status.Reason == "" })
		if got, want := after.Status.ContainerStatuses[0].ContainerID, before[i].Status.ContainerStatuses[0].ContainerID; got != want {
			t.Errorf("pod %s is %s, before %s", pod.Name, got, want)
		}
	}
	if !await(t, func() bool { return h.Ping(t.Context()) == nil }) {
		t.Errorf("Ping with the client: %v", h.Ping(t.Context()))
	}
	h.create(late)
	h.until(late, "running", phase(corev1.PodRunning))
	h.remove(append(pods, late)...)
	server.nothingLeft(t)
}

// TestClientIsLost checks that the pods of a client that stays away have failed for good after lostAfter. When the client is back, it
// ends its running tasks, and no pod returns.
func TestClientIsLost(t *testing.T) {
	server, client := pair(t)
	c := server.config("lost")
	c.LostAfter = duration(2 * time.Second)
	h := openHome(t, c, objects{})
	once, always := shellPod("once", DriverRawExec, forever), shellPod("always", DriverRawExec, forever)
	always.Spec.RestartPolicy = corev1.RestartPolicyAlways
	pods := []*corev1.Pod{once, always}
	for _, pod := range pods {
		h.create(pod)
		h.until(pod, "ready", isReady)
	}
	client.kill()
	lost := func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodFailed && p.Status.Reason == reasonNodeLost
	}
	for _, pod := range pods {
		got := h.untilReported(pod, "lost", lost)
		if s := got.Status.ContainerStatuses[0].State; !strings.Contains(got.Status.Message, "is lost: it was away for too long") || s.Running != nil || s.Terminated != nil && s.Terminated.ExitCode == 0 {
			t.Errorf("pod %s says %q, and its container %+v: want the loss, and no success", pod.Name, got.Status.Message, s)
		}
	}
	if !runs(client) {
		t.Error("the tasks of the client have ended with it, so nothing is to be ended when it is back")
	}
	if err := client.start(); err != nil {
		t.Fatalf("%v\n%s", err, client.log())
	}
	if !await(t, func() bool { return !runs(client) }) {
		t.Error("the client is back, and still runs what was lost")
	}
	for _, pod := range pods {
		h.untilReported(pod, "still lost", lost)
	}
	h.remove(pods...)
	server.nothingLeft(t)
}

// TestLostPodIsDeleted checks that a pod can be deleted while its client is away for good.
func TestLostPodIsDeleted(t *testing.T) {
	server, client := pair(t)
	c := server.config("deleted")
	c.LostAfter = duration(2 * time.Second)
	h := openHome(t, c, objects{secret: map[string][]byte{"a": []byte("1")}})
	pod := keysPod()
	pod.Spec.Containers[0].Command[2] = forever
	h.create(pod)
	h.until(pod, "ready", isReady)
	client.kill()
	h.until(pod, "not ready", unknown)
	h.remove(pod)
	server.nothingLeft(t)
	var nodes []*nomadapi.NodeListStub
	if err := server.do(http.MethodGet, "/v1/nodes", nil, &nodes); err != nil || len(nodes) != 1 || nodes[0].Status == "ready" {
		t.Errorf("the client is %v, %v, want it away", nodes, err)
	}
}

// runs reports whether a task of the agent's client runs.
func runs(a *agent) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, cwd := range all {
		if at, err := os.Readlink(cwd); err == nil && strings.HasPrefix(at, filepath.Join(a.dir, "data/alloc")) {
			return true
		}
	}
	return false
}
