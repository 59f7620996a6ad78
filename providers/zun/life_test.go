// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

func waits(pod *corev1.Pod) string {
	if len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Waiting != nil {
		return pod.Status.ContainerStatuses[0].State.Waiting.Reason
	}
	return ""
}

// untilWaits waits until the container of a pod waits with this reason.
func (h *home) untilWaits(p opened, pod *corev1.Pod, reason string) (is *corev1.Pod) {
	h.Helper()
	h.Until("it waits for "+reason, func() (bool, string) {
		got, err := p.GetPod(h.Context(), pod.Namespace, pod.Name)
		if err != nil {
			return false, err.Error()
		}
		is = got
		return waits(got) == reason, brief(got.Status)
	})
	return is
}

// TestCrashLoopIsDeleted: with Docker's own restarts, Zun would neither stop nor delete the container while it waits.
func TestCrashLoopIsDeleted(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, _ := h.start()
	pod := h.Pod("default", "web", program.Program{Exit: 3})
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	h.Create(p, pod)
	is := h.untilWaits(p, pod, "CrashLoopBackOff")
	if c := is.Status.ContainerStatuses[0]; c.RestartCount != 1 || c.LastTerminationState.Terminated == nil || c.LastTerminationState.Terminated.ExitCode != 3 {
		t.Errorf("got %+v, want one restart after exit code 3", c)
	}
	h.Delete(p, pod)
	h.UntilGone(p, pod)
	h.Until("Zun has nothing of it", func() (bool, string) {
		ids, _ := h.cloud.Containers(identity.TagUID, string(pod.UID))
		return len(ids) == 0, fmt.Sprint(ids)
	})
}

// TestContainerThatStopsAlreadyIsRemoved: a container that was stopped before its pod was deleted is removed after it has stopped.
func TestContainerThatStopsAlreadyIsRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T, h *home) {
		p, stop := h.start()
		defer stop()
		time.Sleep(time.Second) // objects from now on do not belong to an earlier process
		pod := h.Pod("default", "web", program.Program{Stay: program.Forever, Deaf: true})
		h.Create(p, pod)
		h.UntilRuns(p, pod)
		id, _, err := h.cloud.container(pod)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.driver.client.requestAction(t.Context(), id, "stop", url.Values{"timeout": {"20"}}); err != nil { // as after a failed probe, or by an earlier process
			t.Fatal(err)
		}
		h.Until("the list shows that it stops", func() (bool, string) {
			_, i, _ := p.Cache().Get(pod.UID)
			return i.TaskState == "container_stopping", i.TaskState
		})
		h.Delete(p, pod)
		h.UntilGone(p, pod)
		h.Until("Zun has nothing of it", func() (bool, string) {
			ids, _ := h.cloud.Containers(identity.TagUID, string(pod.UID))
			return len(ids) == 0, fmt.Sprint(ids)
		})
	})
}

// caller is the caller of a command.
type caller struct {
	in  io.Reader
	out bytes.Buffer
}

type noClose struct{ io.Writer }

func (noClose) Close() error { return nil }

func (c *caller) Stdin() io.Reader            { return c.in }
func (c *caller) Stdout() io.WriteCloser      { return noClose{&c.out} }
func (c *caller) Stderr() io.WriteCloser      { return nil }
func (c *caller) TTY() bool                   { return false }
func (c *caller) Resize() <-chan api.TermSize { return nil }

// TestExecLimit: Zun limits the time of a command, but not of a session. Without a shell in the image, the error has the limit.
func TestExecLimit(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.cloud.ExecuteTimeout = 300 * time.Millisecond
	p, _ := h.start()
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	long := append([]string{"program"}, program.Program{Stay: time.Second, Print: []string{"done"}}.Args()...)
	var who caller
	if err := p.RunInContainer(t.Context(), pod.Namespace, pod.Name, "main", long, &who); err != nil || !strings.Contains(who.out.String(), "done") {
		t.Errorf("a long command: %v, %q", err, &who.out)
	}
	bare := h.Pod("default", "bare", stays())
	h.cloud.bare.Store(true)
	h.Create(p, bare)
	h.UntilRuns(p, bare)
	if err := p.RunInContainer(t.Context(), bare.Namespace, bare.Name, "main", long, &caller{}); err == nil || !strings.Contains(err.Error(), "without sh in the image Zun waits 5 s") {
		t.Errorf("a long command without a shell: %v", err)
	}
	who = caller{}
	short := append([]string{"program"}, program.Program{Print: []string{"done"}}.Args()...)
	if err := p.RunInContainer(t.Context(), bare.Namespace, bare.Name, "main", short, &who); err != nil || who.out.String() != "done\n" {
		t.Errorf("a short command without a shell: %v, %q", err, &who.out)
	}
	if err := p.RunInContainer(t.Context(), bare.Namespace, bare.Name, "main", short, &caller{in: strings.NewReader("x")}); err == nil {
		t.Error("a command with an input without a shell has run")
	}
}

// inBubble runs a test with its own time, on a cloud without a network.
func inBubble(t *testing.T, f func(t *testing.T, h *home)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		h := &home{Home: remotetest.NewHome(t, "vk-0"), cloud: newCloud(ctx)}
		defer cancel()
		h.config = h.cloud.config()
		h.config.busy, h.config.rest, h.config.idle, h.config.seenWithin, h.config.StatusRequests = 0, 0, 0, 0, 0
		f(t, h)
	})
}

// TestListLag: lists of Zun show an ended container as running for up to a minute. Requests for single containers detect the end earlier, within the
// configured rate.
func TestListLag(t *testing.T) {
	inBubble(t, func(t *testing.T, h *home) {
		p, stop := h.start()
		defer stop()
		time.Sleep(time.Second) // objects from now on do not belong to an earlier process
		var pods []*corev1.Pod
		for i := range 20 {
			pod := h.Pod("default", fmt.Sprint("web-", i), stays())
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			h.Create(p, pod)
			pods = append(pods, pod)
		}
		time.Sleep(2 * time.Minute)
		before, listed := len(h.cloud.front.Requests("GetContainer")), len(h.cloud.front.Requests("ListContainers"))
		time.Sleep(10 * time.Minute)
		asked, lists := len(h.cloud.front.Requests("GetContainer"))-before, len(h.cloud.front.Requests("ListContainers"))-listed
		if lists > 150 || asked > 600 || asked < 500 {
			t.Errorf("%d lists and %d requests for single containers in 10 minutes, want up to 15 and 60 a minute", lists, asked)
		}
		_, run, err := h.cloud.container(pods[7])
		if err != nil {
			t.Fatal(err)
		}
		if err := h.cloud.cloud.Kill(types.UID(run), "main"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(26 * time.Second) // 20 pods, 5 of them each 5 s
		got, err := p.GetPod(t.Context(), "default", "web-7")
		if err != nil || got.Status.Phase != corev1.PodFailed {
			t.Errorf("after 26 s: %v, %v", err, brief(got.Status))
		}
		young := h.Pod("default", "young", stays()) // is due before containers that have been running for long
		young.Spec.RestartPolicy = corev1.RestartPolicyNever
		h.Create(p, young)
		time.Sleep(20 * time.Second)
		if _, run, err = h.cloud.container(young); err != nil {
			t.Fatal(err)
		}
		if err := h.cloud.cloud.Kill(types.UID(run), "main"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		if got, err = p.GetPod(t.Context(), "default", "young"); err != nil || got.Status.Phase != corev1.PodFailed {
			t.Errorf("one that ended after 20 s, 6 s later: %v, %v", err, brief(got.Status))
		}
	})
}

// TestRequestsOfALife: a pod needs a create, a stop, a read of its exit code and a delete. Except for lists, there are no other requests while a pod
// starts or stops. Reads of running containers, and of the exit codes of deleted pods with the restart policy Always, stay within the budget, and
// lists within their rate.
func TestRequestsOfALife(t *testing.T) {
	for policy, want := range map[corev1.RestartPolicy]struct {
		exits int     // reads of exit codes beyond the budget, for each pod
		most  float64 // requests of a life
	}{corev1.RestartPolicyNever: {1, 4.15}, corev1.RestartPolicyAlways: {0, 3.25}} {
		t.Run(string(policy), func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *home) {
				p, stop := h.start()
				defer stop()
				time.Sleep(time.Second) // objects from now on do not belong to an earlier process
				count := func(operations ...string) int { return len(h.cloud.front.Requests(operations...)) }
				const n, every = 400, 75 * time.Millisecond
				begun, all, looked, listed := time.Now(), count(), count("GetContainer"), count("ListContainers")
				var pods []*corev1.Pod
				for i := range n {
					pods = append(pods, h.Pod("default", fmt.Sprint("web-", i), stays()))
					pods[i].Spec.RestartPolicy = policy
					h.Create(p, pods[i])
					time.Sleep(every)
				}
				for _, pod := range pods {
					h.Delete(p, pod)
					time.Sleep(every)
				}
				for _, pod := range pods {
					h.UntilGone(p, pod)
				}
				time.Sleep(2 * busyEvery) // for the last deletions
				for _, operation := range []string{"CreateContainer", "stop", "DeleteContainer"} {
					if got := count(operation); got != n {
						t.Errorf("%d requests %s for %d pods", got, operation, n)
					}
				}
				seconds := int(time.Since(begun).Seconds())
				looks, lists := count("GetContainer")-looked-want.exits*n, count("ListContainers")-listed
				if looks > seconds+5 || lists > seconds/2+10 {
					t.Errorf("in %d s there were %d lists and %d looks within the budget, want a list each 2 s and a look each second", seconds, lists, looks)
				}
				if got := float64(count()-all) / n; got > want.most {
					t.Errorf("%.2f requests a life, want %.2f: %v", got, want.most, operations(h))
				}
			})
		})
	}
}

// operations returns the number of requests of each operation.
func operations(h *home) map[string]int {
	all := map[string]int{}
	for _, r := range h.cloud.front.Requests() {
		all[r.Operation]++
	}
	return all
}

// TestRequestsAtRest: while nothing changes for ten minutes, there are only lists, and reads within the budget.
func TestRequestsAtRest(t *testing.T) {
	inBubble(t, func(t *testing.T, h *home) {
		p, stop := h.start()
		defer stop()
		time.Sleep(time.Second) // objects from now on do not belong to an earlier process
		for i := range 100 {
			h.Create(p, h.Pod("default", fmt.Sprint("web-", i), stays()))
		}
		time.Sleep(5 * time.Minute)
		before := len(h.cloud.front.Requests())
		time.Sleep(10 * time.Minute)
		if n := len(h.cloud.front.Requests()) - before; n > 10*75 {
			t.Errorf("%d requests in 10 minutes, want 12 lists and 60 looks a minute: %v", n, operations(h))
		}
	})
}

// TestFailedDeletionIsRepeated: Zun accepts a deletion and fails later. The container is then listed with its error, without a pod.
func TestFailedDeletionIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, h *home) {
		p, stop := h.start()
		defer stop()
		time.Sleep(time.Second) // objects from now on do not belong to an earlier process
		pod := h.Pod("default", "web", stays())
		h.Create(p, pod)
		h.UntilRuns(p, pod)
		h.cloud.front.Break(emulator.Fault{Operations: []string{"DeleteContainer"}, Times: 1, Answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }})
		h.Delete(p, pod)
		h.UntilGone(p, pod)
		if err := h.Pods.Delete(pod); err != nil {
			t.Fatal(err)
		}
		h.Until("Zun has nothing of it", func() (bool, string) {
			ids, _ := h.cloud.Containers(identity.TagUID, string(pod.UID))
			return len(ids) == 0, fmt.Sprint(ids)
		})
		if n := len(h.cloud.front.Requests("DeleteContainer")); n != 2 {
			t.Errorf("%d deletions, want one that fails and one more", n)
		}
	})
}

// TestKillBetweenCreateAndAnswer: a process is killed at that point a hundred times. The next process finds the container, and makes no second one.
func TestKillBetweenCreateAndAnswer(t *testing.T) {
	t.Parallel()
	for round := range 100 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, h *home) { killBetweenCreateAndAnswer(t, h, round) })
		})
	}
}

func killBetweenCreateAndAnswer(t *testing.T, h *home, round int) {
	h.config.earlierWithin = 0
	p, stop := h.start()
	pod := h.Pod("default", "web", stays())
	if err := h.Pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	fault := emulator.Fault{Operations: []string{"CreateContainer"}, Times: 1}
	switch late := time.Duration(round) * time.Second; round % 3 {
	case 0:
		fault.Lose = true
	case 1: // it never comes
		fault.Hang = true
	default: // the container may appear when no caller waits for it any longer
		fault.Answer = func(_ http.ResponseWriter, r *http.Request) {
			again := r.Clone(context.WithoutCancel(r.Context()))
			time.AfterFunc(late/2, func() { h.cloud.Server.ServeHTTP(httptest.NewRecorder(), again) })
			<-r.Context().Done()
		}
	}
	h.cloud.front.Break(fault)
	ctx, kill := context.WithTimeout(t.Context(), time.Second)
	_ = p.CreatePod(ctx, pod) // the process is killed, so its result is ignored
	kill()
	stop()
	p, stop = h.start()
	defer stop()
	for begun := time.Now(); ; {
		err := p.CreatePod(t.Context(), pod)
		if err == nil {
			break
		}
		if time.Since(begun) > 5*time.Minute {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
	for range 400 { // a second container would be removed after some seconds
		time.Sleep(100 * time.Millisecond)
		if ids, _ := h.cloud.Containers(identity.TagUID, string(pod.UID)); len(ids) != 1 {
			t.Fatalf("the pod has the containers %v", ids)
		}
	}
}

// TestCapsule runs two containers in one capsule, on a cloud that supports capsules.
func TestCapsule(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.config.Capsules, h.cloud.Capsules = true, true
	p, _ := h.start()
	pod := h.Pod("default", "web", stays())
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	second := *pod.Spec.Containers[0].DeepCopy()
	second.Name = "second"
	pod.Spec.Containers = append(pod.Spec.Containers, second)
	h.Create(p, pod)
	is := h.UntilRuns(p, pod)
	if len(is.Status.ContainerStatuses) != 2 {
		t.Errorf("got %+v", is.Status.ContainerStatuses)
	}
	if err := p.RunInContainer(t.Context(), pod.Namespace, pod.Name, "second", []string{"true"}, &caller{}); err == nil || !strings.Contains(err.Error(), "has no exec") {
		t.Errorf("exec: %v", err)
	}
	h.Delete(p, pod)
	h.UntilGone(p, pod)
}

// TestTokenThatEndsIsReplaced: Zun responds with 401, and the request is repeated with a new token, for the current password.
func TestTokenThatEndsIsReplaced(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, _ := h.start()
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	h.cloud.EndTokens()
	h.UntilRuns(p, pod)
	if err := p.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if n := len(h.cloud.front.Requests("Login")); n < 2 || n > 6 {
		t.Errorf("logged in with %d requests", n)
	}
}

// TestLoginThatFailsIsNoAnswerAboutContainers: Keystone responds with 404 for a deleted application credential. The containers still exist.
func TestLoginThatFailsIsNoAnswerAboutContainers(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.config.Identity = Identity{AuthURL: h.config.Identity.AuthURL, ApplicationCredentialID: "app-deleted", ApplicationCredentialSecret: config.Literal("the-secret")}
	d := h.open().driver
	_, listed := d.List(t.Context())
	for what, err := range map[string]error{"list": listed, "remove": d.Remove(t.Context(), "c")} {
		if err == nil || errdefs.IsNotFound(err) || !strings.Contains(err.Error(), "404 Not Found: Could not find Application Credential: app-deleted.: look at the credentials") {
			t.Errorf("%s: got %v of the kind not-found: %t", what, err, errdefs.IsNotFound(err))
		}
	}
}

// TestRegistryIsRemovedWithThePod: the login of pods is a registry of Zun, which exists as long as a container refers to it. A registry of an earlier
// process is removed, but not a registry of another cluster.
func TestRegistryIsRemovedWithThePod(t *testing.T) {
	inBubble(t, func(t *testing.T, h *home) {
		h.logins = credentials{{Registry: "registry.example.com", Username: "u", Password: "p"}}
		p, stop := h.start()
		time.Sleep(time.Second) // objects from now on do not belong to an earlier process
		pod, left := h.Pod("default", "web", stays()), h.Pod("default", "left", stays())
		for _, one := range []*corev1.Pod{pod, left} {
			one.Spec.Containers[0].Image, one.Spec.ImagePullSecrets = "registry.example.com/program:1", []corev1.LocalObjectReference{{Name: "s"}}
			h.Create(p, one)
			h.UntilRuns(p, one)
		}
		if _, err := p.driver.client.call(t.Context(), "create registry", http.MethodPost, registries, nil, map[string]any{"registry": registry{Name: "vk-of-another", Domain: "example.com"}}, nil); err != nil {
			t.Fatal(err)
		}
		after := func(d time.Duration, what string, want int) {
			t.Helper()
			time.Sleep(d)
			if got := h.cloud.Registries(); len(got) != want {
				t.Errorf("%s, the registries are %q, want %d", what, got, want)
			}
		}
		after(time.Hour, "with two pods of one login", 2)
		h.Delete(p, pod)
		h.UntilGone(p, pod)
		after(time.Hour, "with one of them", 2)
		stop()
		id, run, err := h.cloud.container(left)
		if err != nil {
			t.Fatal(err)
		}
		h.cloud.Lose(id) // without a process that removes its registry
		if err := h.cloud.cloud.Lose(types.UID(run)); err != nil {
			t.Fatal(err)
		}
		if err := h.Pods.Delete(left); err != nil {
			t.Fatal(err)
		}
		_, stop = h.start()
		defer stop()
		after(5*time.Minute, "with none of them, and a new process", 1)
		if got := h.cloud.Registries(); !slices.Equal(got, []string{"vk-of-another"}) {
			t.Errorf("%q are left", got)
		}
	})
}

// TestSweepKeepsRegistryOfCreate: while a create has made the registry and not yet the container, the search for registries of earlier processes keeps the registry.
func TestSweepKeepsRegistryOfCreate(t *testing.T) {
	inBubble(t, func(t *testing.T, h *home) {
		h.logins = credentials{{Registry: "registry.example.com", Username: "u", Password: "p"}}
		h.cloud.front.Break(emulator.Fault{Operations: []string{"ListRegistrys"}, Times: 1, Delay: 5 * time.Second}) // of the search
		h.cloud.front.Break(emulator.Fault{Operations: []string{"CreateContainer"}, Times: 1, Delay: 20 * time.Second})
		p, stop := h.start()
		defer stop()
		time.Sleep(time.Second) // the search has begun
		pod := h.Pod("default", "web", stays())
		pod.Spec.Containers[0].Image, pod.Spec.ImagePullSecrets = "registry.example.com/program:1", []corev1.LocalObjectReference{{Name: "s"}}
		h.Create(p, pod)
		h.UntilRuns(p, pod)
		if got := h.cloud.Registries(); len(got) != 1 {
			t.Errorf("the registries are %q, want that of the pod", got)
		}
	})
}

// TestSweepWaitsForCreatesOfEarlierProcess: a create of an earlier process may still be in progress at Zun, and its container then refers to the
// registry.
func TestSweepWaitsForCreatesOfEarlierProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, h *home) {
		h.config.earlierWithin = time.Minute
		h.logins = credentials{{Registry: "registry.example.com", Username: "u", Password: "p"}}
		pod := h.Pod("default", "web", stays())
		pod.Spec.Containers[0].Image, pod.Spec.ImagePullSecrets = "registry.example.com/program:1", []corev1.LocalObjectReference{{Name: "s"}}
		in := &service.Inputs{Pod: pod, Name: "web", Logins: h.logins}
		if _, err := h.open().driver.logins.useRegistry(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		_, stop := h.start()
		defer stop()
		time.Sleep(50 * time.Second)
		if got := h.cloud.Registries(); len(got) != 1 {
			t.Errorf("the registries are %q, want that of the earlier process", got)
		}
		time.Sleep(time.Minute)
		if got := h.cloud.Registries(); len(got) != 0 {
			t.Errorf("the registries are %q, want none", got)
		}
	})
}

// TestRegistryIsKeptAfterUnansweredCreate: Zun may still make the container of a create without an answer, and the container then refers to the
// registry. The registry is removed after the pod is gone and lists would show the container.
func TestRegistryIsKeptAfterUnansweredCreate(t *testing.T) {
	inBubble(t, func(t *testing.T, h *home) {
		h.logins = credentials{{Registry: "registry.example.com", Username: "u", Password: "p"}}
		p, stop := h.start()
		defer stop()
		time.Sleep(time.Second) // objects from now on do not belong to an earlier process
		h.cloud.front.Break(emulator.Fault{Operations: []string{"CreateContainer"}, Times: 1, Hang: true})
		pod := h.Pod("default", "web", stays())
		pod.Spec.Containers[0].Image, pod.Spec.ImagePullSecrets = "registry.example.com/program:1", []corev1.LocalObjectReference{{Name: "s"}}
		if err := p.CreatePod(t.Context(), pod); err == nil {
			t.Fatal("the create has an answer")
		}
		lists := len(h.cloud.front.Requests("ListContainers"))
		time.Sleep(seenWithin - time.Second)
		if got := h.cloud.Registries(); len(got) != 1 || len(h.cloud.front.Requests("ListContainers")) == lists {
			t.Errorf("the registries are %q, want that of the pod", got)
		}
		time.Sleep(2 * time.Minute)
		if got := h.cloud.Registries(); len(got) != 0 {
			t.Errorf("the registries are %q, want none", got)
		}
	})
}
