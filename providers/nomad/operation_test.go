// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// leastToken makes a token with the policy that the README recommends.
func (a *agent) leastToken() (string, error) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		return "", err
	}
	rules := regexp.MustCompile("(?s)```hcl\n(.*?)```").FindSubmatch(readme)
	if rules == nil {
		return "", errors.New("the README has no policy")
	}
	return a.tokenOf("vk", string(rules[1]))
}

// tokenOf makes a token with a policy.
func (a *agent) tokenOf(name, rules string) (string, error) {
	if err := a.do(http.MethodPost, "/v1/acl/policy/"+name, nomadapi.ACLPolicy{Name: name, Rules: rules}, nil); err != nil {
		return "", err
	}
	return a.tokenFor(name, 0)
}

// tokenFor makes a token with an existing policy. The token expires after lasts; with 0 it never expires.
func (a *agent) tokenFor(policy string, lasts time.Duration) (string, error) {
	var token nomadapi.ACLToken
	err := a.do(http.MethodPost, "/v1/acl/token", nomadapi.ACLToken{Type: "client", Policies: []string{policy}, ExpirationTTL: lasts}, &token)
	return token.SecretID, err
}

// withTokenFile returns a configuration with a token file, and a function that writes the file.
func withTokenFile(t *testing.T, a *agent, cluster string) (c Config, write func(string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	put := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(a.least)
	c = a.config(cluster)
	if err := c.Token.UnmarshalJSON([]byte(`{"file":"` + file + `"}`)); err != nil {
		t.Fatal(err)
	}
	return c, func(token string) {
		t.Helper()
		put(token)
		awaitToken(t, c, token)
	}
}

// awaitToken waits until the provider has read the changed token file again.
func awaitToken(t *testing.T, c Config, token string) {
	t.Helper()
	if !await(t, func() bool { return c.Token.Value(t.Context()) == token }) {
		t.Fatal("the token of the file is not used after a minute")
	}
}

// await waits for a condition, and reports whether the condition became true.
func await(t *testing.T, ok func() bool) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !ok() {
		if ctx.Err() != nil {
			return false
		}
		sleep(ctx, 50*time.Millisecond)
	}
	return true
}

// nothingLeft fails the test if Nomad has jobs or Variables.
func (a *agent) nothingLeft(t *testing.T) {
	t.Helper()
	var jobs []*nomadapi.JobListStub
	var variables []*nomadapi.VariableMetadata
	if err := a.do(http.MethodGet, "/v1/jobs", nil, &jobs); err != nil || len(jobs) > 0 {
		t.Errorf("%d jobs are left, %v", len(jobs), err)
	}
	if err := a.do(http.MethodGet, "/v1/vars", nil, &variables); err != nil || len(variables) > 0 {
		t.Errorf("%d Variables are left, %v", len(variables), err)
	}
}

// TestWithoutRights checks that missing rights of the token are reported, are not blamed on the pod, and leave
// no half-submitted job.
func TestWithoutRights(t *testing.T) {
	a := newAgent(t, agent{acl: true})
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	least := string(regexp.MustCompile("(?s)```hcl\n(.*?)```").FindSubmatch(readme)[1])
	for without, rules := range map[string]string{
		"submit-job": strings.Replace(least, `"submit-job", `, "", 1),
		"write":      strings.Replace(least, `"write", `, "", 1),
	} {
		if rules == least {
			t.Fatalf("the policy has no %s", without)
		}
		token, err := a.tokenOf("without-"+without, rules)
		if err != nil {
			t.Fatal(err)
		}
		c := a.config("rights")
		c.Token = config.Literal(token)
		h := openHome(t, c, objects{secret: map[string][]byte{"a": []byte("1")}})
		if err := h.CreatePod(t.Context(), keysPod()); err == nil || !strings.Contains(err.Error(), "403: Permission denied") || errdefs.IsInvalidInput(err) {
			t.Errorf("CreatePod without %s: got %v, want the 403 of Nomad", without, err)
		}
		if list, err := h.GetPods(t.Context()); err != nil || len(list) > 0 {
			t.Errorf("without %s the node has %d pods, %v, want none", without, len(list), err)
		}
		h.stop()
		a.nothingLeft(t)
	}
	for without, want := range map[string]string{`"list-jobs", `: "", `"read-job", `: "403", "node {\n  policy = \"read\"\n}": "403"} {
		token, err := a.tokenOf("part", strings.Replace(least, without, "", 1))
		if err != nil {
			t.Fatal(err)
		}
		c := a.config("rights")
		c.Token = config.Literal(token)
		if err := openHome(t, c, objects{}).Examine(t.Context()); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Examine without %q: got %v, want the 403 of Nomad", without, err)
		}
	}
}

// TestTokenExpires checks that an expired or unknown token is reported and costs no pod, and that a renewed
// token is used.
func TestTokenExpires(t *testing.T) {
	a := newAgent(t, agent{acl: true})
	c, write := withTokenFile(t, a, "expires")
	h := openHome(t, c, objects{})
	pod := shellPod("runs", DriverRawExec, forever)
	h.create(pod)
	before := h.until(pod, "running", phase(corev1.PodRunning))
	if err := h.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	short, err := a.tokenFor("vk", 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	write(short)
	if !await(t, func() bool { return h.Ping(t.Context()) != nil }) {
		t.Error("the node is Ready with a token that has ended")
	}
	write("00000000-0000-0000-0000-000000000000")
	late := shellPod("late", DriverRawExec, forever)
	if err := h.CreatePod(t.Context(), late); err == nil || !strings.Contains(err.Error(), "403") || errdefs.IsInvalidInput(err) || errdefs.IsNotFound(err) {
		t.Errorf("CreatePod with a token that is not known: got %v, want the 403 of Nomad", err)
	}
	renewed, err := a.leastToken()
	if err != nil {
		t.Fatal(err)
	}
	write(renewed)
	h.create(late)
	h.until(late, "running", phase(corev1.PodRunning))
	if after := h.until(pod, "running", phase(corev1.PodRunning)); after.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("the pod was replaced: %v, before %v", after.Status, before.Status)
	}
	h.remove(pod, late)
	a.nothingLeft(t)
}

// TestAgentRestarts checks that no pod is lost when an agent with 50 pods is killed.
func TestAgentRestarts(t *testing.T) {
	a := newAgent(t, agent{})
	c := a.config("restarts")
	c.Network = NetworkHost
	c.DefaultResources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("16Mi")}
	h := openHome(t, c, objects{})
	var pods, before []*corev1.Pod
	for i := range 50 {
		pods = append(pods, shellPod(fmt.Sprint("pod-", i), DriverRawExec, "exec sleep 1000"))
		h.create(pods[i])
	}
	for _, pod := range pods {
		before = append(before, h.until(pod, "running", phase(corev1.PodRunning)))
	}
	a.kill()
	if !await(t, func() bool { return h.Ping(t.Context()) != nil }) {
		t.Fatal("the node is Ready without its agent")
	}
	if list, err := h.GetPods(t.Context()); err == nil && len(list) != 50 {
		t.Errorf("without its agent the node says that there are %d pods", len(list))
	}
	if err := a.start(); err != nil {
		t.Fatalf("%v\n%s", err, a.log())
	}
	if !await(t, func() bool { return h.Ping(t.Context()) == nil }) {
		t.Fatalf("the node is not Ready with its agent: %v", h.Ping(t.Context()))
	}
	for i, pod := range pods {
		after := h.until(pod, "running", phase(corev1.PodRunning))
		if got, want := after.Status.ContainerStatuses[0].ContainerID, before[i].Status.ContainerStatuses[0].ContainerID; got != want {
			t.Errorf("pod %s is %s, before %s", pod.Name, got, want)
		}
	}
	h.remove(pods...)
	a.nothingLeft(t)
}

// TestKilledBetweenSubmissionAndAnswer checks that a node that is killed before it has the answer to a
// submission makes no second job.
func TestKilledBetweenSubmissionAndAnswer(t *testing.T) {
	a := sharedAgent(t)
	l, err := newLine(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.server.Close)
	c := a.config("killed")
	c.Network = NetworkHost
	direct := openHome(t, c, objects{})
	var pods []*corev1.Pod
	for i := range 100 {
		pod := shellPod(fmt.Sprint("pod-", i), DriverRawExec, "exit 3")
		pods = append(pods, pod)
		killed := c
		killed.Address = l.server.URL
		l.set(func() { l.lose, l.dies, l.dead = true, true, false })
		h := openHome(t, killed, objects{})
		if err := h.CreatePod(t.Context(), pod); err == nil {
			t.Fatal("CreatePod went well, although the answer was lost")
		}
		h.stop()
		if err := direct.CreatePod(t.Context(), pod); err != nil {
			t.Fatalf("round %d: CreatePod again: %v", i, err)
		}
	}
	for _, pod := range pods {
		got := direct.until(pod, "ended", phase(corev1.PodFailed))
		if code := got.Status.ContainerStatuses[0].State.Terminated; code == nil || code.ExitCode != 3 {
			t.Errorf("pod %s ended with %v, want the exit code 3", pod.Name, code)
		}
		if all, err := a.allocs(direct.d.store.owner.jobID(string(pod.UID))); err != nil || len(all) != 1 {
			t.Errorf("pod %s has %d allocations, %v, want one", pod.Name, len(all), err)
		}
	}
	var jobs []*nomadapi.JobListStub
	if err := a.do(http.MethodGet, "/v1/jobs?prefix="+direct.d.store.owner.prefix(), nil, &jobs); err != nil || len(jobs) != 100 {
		t.Errorf("there are %d jobs, %v, want 100", len(jobs), err)
	}
	direct.remove(pods...)
}

// TestNoPlace checks that a pod that Nomad cannot run has a clear status.
func TestNoPlace(t *testing.T) {
	a := sharedAgent(t)
	c := a.config("no-place")
	h := openHome(t, c, objects{})
	far := shellPod("far", DriverRawExec, forever)
	far.Annotations[AnnotationDatacenters] = "mars"
	large := shellPod("large", DriverRawExec, forever)
	large.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("9Ti")}
	for pod, want := range map[*corev1.Pod]string{far: "no client is ready and eligible", large: "exhausted: memory"} {
		h.create(pod)
		h.until(pod, "without a place", func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodPending && p.Status.Reason == reasonUnschedulable && strings.Contains(p.Status.Message, want)
		})
	}
	if err := h.CreatePod(t.Context(), shellPod("other", DriverDocker, forever)); !errdefs.IsInvalidInput(err) {
		t.Errorf("CreatePod with a driver that is not allowed: got %v, want one of the kind invalid-input", err)
	}
	h.remove(far, large)
	c.Namespace, c.ClusterName = "nowhere", "no-namespace"
	elsewhere := openHome(t, c, objects{})
	if err := elsewhere.CreatePod(t.Context(), shellPod("nowhere", DriverRawExec, forever)); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("CreatePod in a namespace that does not exist: got %v, want that it does not", err)
	}
	c = a.config("mars")
	c.Datacenters = []string{"mars"}
	if err := openHome(t, c, objects{}).Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "mars") {
		t.Errorf("Ping without a client: got %v, want that mars has none", err)
	}
}

// TestMemoryLimit checks that a container above its limit is killed, and that the status of the pod says so.
func TestMemoryLimit(t *testing.T) {
	h := openHome(t, sharedAgent(t).config("memory"), objects{})
	pod := shellPod("memory", DriverExec, `x=0123456789abcdef; while :; do x=$x$x; done`)
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("20Mi")}
	h.create(pod)
	got := h.until(pod, "ended", phase(corev1.PodFailed))
	if s := got.Status.ContainerStatuses[0].State.Terminated; s == nil || s.Reason != "OOMKilled" || s.ExitCode == 0 {
		t.Errorf("the container ended with %v, want OOMKilled", s)
	}
	h.remove(pod)
}

// TestHostNetwork checks that a pod with hostNetwork has the address of its client, and that other pods have
// their own.
func TestHostNetwork(t *testing.T) {
	h := openHome(t, sharedAgent(t).config("host-network"), objects{})
	pod, own := shellPod("host", DriverExec, forever), shellPod("own", DriverExec, forever)
	pod.Spec.HostNetwork = true
	h.create(pod)
	h.create(own)
	h.until(pod, "at the address of the client", func(p *corev1.Pod) bool { return p.Status.PodIP == "127.0.0.1" && p.Status.HostIP == "127.0.0.1" })
	h.until(own, "at an address of its own", func(p *corev1.Pod) bool {
		return strings.HasPrefix(p.Status.PodIP, "172.26.") && p.Status.HostIP == "127.0.0.1"
	})
	h.remove(pod, own)
}
