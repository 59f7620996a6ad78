// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// behaviour describes how a published plugin answers questions about pods.
type behaviour struct {
	// source names the program and the version of its source.
	source string
	// empty is set if the answer about an unknown pod has containers without a state.
	empty bool
	// absent is the body of the 404 about an unknown pod, or "" if there is no 404.
	absent string
	// first is set if only the first pod of a request is answered.
	first bool
	// keeps is the time for which a whole answer is repeated, whatever the request.
	keeps time.Duration
	// job is set if each answer has the ID of the job.
	job bool
	// ready is set if each answer reports whether a container is ready.
	ready bool
	// breaks is set if the deletion of an unknown pod ends the connection.
	breaks bool
}

// behaviours are the behaviours of the published plugins.
var behaviours = map[string]behaviour{
	"slurm":  {source: "interlink-hq/interlink-slurm-plugin f8451d9: pkg/slurm/Status.go, prepare.go", empty: true, ready: true, keeps: 10 * time.Second, breaks: true},
	"sdk":    {source: "interlink-hq/interlink-plugin-sdk 2c8a063: provider.py; interLink: docs/guides/02-develop-a-plugin.md", absent: `{"detail":"No containers found for UUID"}`, first: true},
	"condor": {source: "interlink-hq/interlink-htcondor-plugin 6f5ee3e: handles.py", absent: `{"error": "Pod not found"}`, first: true, job: true, ready: true},
	"k8s":    {source: "interlink-hq/interlink-kubernetes-plugin cfebf48", job: true, ready: true},
}

// published is a plugin with a published behaviour. Its jobs wait for a second, and then run until they end.
type published struct {
	behaviour

	mu     sync.Mutex
	jobs   map[types.UID]*publishedJob // guarded by mu; the jobs that were not deleted
	made   map[types.UID]int           // guarded by mu; the number of submissions
	kept   []wire.PodStatus            // guarded by mu
	keptAt time.Time                   // guarded by mu
	broken map[types.UID]bool          // guarded by mu; a request that contains one of these pods is answered with 500
}

type publishedJob struct {
	id       string
	at, ends time.Time
}

// ServeHTTP implements http.Handler.
func (p *published) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.URL.Path {
	case wire.PathCreate:
		var in wire.Retrieved
		_ = json.NewDecoder(r.Body).Decode(&in)
		uid := in.Pod.UID
		p.made[uid]++
		p.jobs[uid] = &publishedJob{id: fmt.Sprint(1000 + len(p.made)), at: time.Now(), ends: time.Now().Add(runs(in.Pod))}
		_ = json.NewEncoder(w).Encode(wire.Created{PodUID: string(uid), JobID: p.jobs[uid].id})
	case wire.PathDelete:
		var pod corev1.Pod
		_ = json.NewDecoder(r.Body).Decode(&pod)
		switch known := p.jobs[pod.UID] != nil; {
		case !known && p.breaks:
			panic(http.ErrAbortHandler)
		case !known && p.absent != "":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, p.absent)
		}
		delete(p.jobs, pod.UID)
	case wire.PathStatus:
		p.status(w, r)
	}
}

// status answers requests about pods. The caller holds p.mu.
func (p *published) status(w http.ResponseWriter, r *http.Request) {
	var asked []corev1.Pod
	_ = json.NewDecoder(r.Body).Decode(&asked)
	if p.keeps > 0 && time.Since(p.keptAt) < p.keeps {
		_ = json.NewEncoder(w).Encode(p.kept)
		return
	}
	if p.first && len(asked) > 1 {
		asked = asked[:1]
	}
	said := []wire.PodStatus{}
	for i := range asked {
		job := p.jobs[asked[i].UID]
		switch {
		case p.broken[asked[i].UID]:
			http.Error(w, "unable to retrieve container status", http.StatusInternalServerError)
			return
		case job == nil && p.absent != "":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, p.absent)
			return
		case job != nil || p.empty:
			said = append(said, p.say(&asked[i], job))
		}
	}
	p.kept, p.keptAt = said, time.Now()
	_ = json.NewEncoder(w).Encode(said)
}

// say returns the answer about one pod. The caller holds p.mu.
func (p *published) say(pod *corev1.Pod, job *publishedJob) wire.PodStatus {
	s := wire.PodStatus{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)}
	for i := range pod.Spec.Containers {
		c := corev1.ContainerStatus{Name: pod.Spec.Containers[i].Name}
		switch {
		case job == nil:
		case time.Since(job.at) < time.Second:
			c.State.Waiting = &corev1.ContainerStateWaiting{}
		case time.Now().Before(job.ends):
			c.State.Running, c.Ready = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(job.at)}, p.ready
		default:
			c.State.Terminated = &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(job.at), FinishedAt: metav1.NewTime(job.ends)}
		}
		s.Containers = append(s.Containers, c)
	}
	if p.job && job != nil {
		s.JobID = job.id
	}
	return s
}

// runs returns the run time of a pod's job, from its command.
func runs(pod *corev1.Pod) time.Duration {
	d, err := time.ParseDuration(pod.Spec.Containers[0].Command[1] + "s")
	if err != nil {
		panic(err)
	}
	return d
}

// outside is a home whose pods go through an API server to a plugin with a published behaviour, without a
// network.
type outside struct {
	*remotetest.Home
	plugin *published
	server *double
}

func newField(t *testing.T, b behaviour) *outside {
	f := &outside{Home: remotetest.NewHome(t, "vk-0"), plugin: &published{
		behaviour: b, jobs: map[types.UID]*publishedJob{}, made: map[types.UID]int{}, broken: map[types.UID]bool{},
	}}
	f.server = &double{sidecar: &http.Client{Transport: direct{f.plugin}}, cache: map[string]wire.PodStatus{}}
	return f
}

// start runs a provider until stop is called, or the test ends.
func (f *outside) start() (p *provider, stop func()) {
	f.Helper()
	p, err := openProvider(f.Input(), Config{URL: "http://site.test"})
	if err != nil {
		f.Fatal(err)
	}
	p.client.http.Transport = direct{f.server}
	return p, f.Run(p)
}

// pod returns the sleeping pod of interLink's quick start.
func (f *outside) pod(name, seconds string) *corev1.Pod {
	pod := f.Pod("default", name, stays())
	pod.Spec.RestartPolicy, pod.Spec.ServiceAccountName = corev1.RestartPolicyNever, ""
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "docker://ubuntu", Command: []string{"sleep", seconds}}}
	return pod
}

// again calls do until it succeeds, for a limited time, with the waits that the errors ask for.
func (f *outside) again(what string, do func() error) {
	f.Helper()
	for begin := time.Now(); ; {
		err := do()
		if err == nil {
			return
		}
		after, says := errdefs.RetryAfterOf(err)
		if !says {
			after = time.Second
		}
		if time.Since(begin) > time.Minute {
			f.Fatalf("%s: after %s: %v", what, time.Since(begin), err)
		}
		time.Sleep(after)
	}
}

func (f *outside) create(p *provider, pod *corev1.Pod) {
	f.Helper()
	if err := f.Pods.Add(pod); err != nil {
		f.Fatal(err)
	}
	f.again("create "+pod.Name, func() error { return p.CreatePod(f.Context(), pod.DeepCopy()) })
}

// remove asks for the deletion of a pod until nothing of it is left.
func (f *outside) remove(p *provider, pod *corev1.Pod) {
	f.Helper()
	f.again("delete "+pod.Name, func() error {
		err := p.DeletePod(f.Context(), pod.DeepCopy())
		if errdefs.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errdefs.RetryAfter(errors.New("it is not gone"), time.Second))
	})
	f.UntilGone(p, pod)
}

func (p *published) submitted(uid types.UID) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made[uid]
}

func (p *published) set(f func(*published)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

// inMode runs a test with a published behaviour in a synctest bubble. "" means each behaviour.
func inMode(t *testing.T, mode string, test func(t *testing.T, f *outside)) {
	for name, b := range behaviours {
		if mode == "" || mode == name {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, newField(t, b)) })
			})
		}
	}
}

func TestPublishedA1PodsRunAndAreGoneWithTheSlurmPlugin(t *testing.T) { inMode(t, "slurm", podsRun) }

func TestPublishedA2PodsRunAndAreGoneWithAPluginOfTheSDK(t *testing.T) { inMode(t, "sdk", podsRun) }

func TestPublishedA3PodsRunAndAreGoneWithTheHTCondorPlugin(t *testing.T) {
	inMode(t, "condor", podsRun)
}

func TestPublishedA4PodsRunAndAreGoneWithTheKubernetesPlugin(t *testing.T) { inMode(t, "k8s", podsRun) }

// podsRun submits three pods and checks that each has exactly one job. One pod ends by itself, the others are
// deleted.
func podsRun(t *testing.T, f *outside) {
	p, _ := f.start()
	pods := []*corev1.Pod{f.pod("m1", "600"), f.pod("m2", "600"), f.pod("m3", "60")}
	begin := time.Now()
	for _, pod := range pods {
		f.create(p, pod)
	}
	for _, pod := range pods {
		if got := f.UntilRuns(p, pod); !got.Status.ContainerStatuses[0].Ready {
			t.Errorf("pod %s runs, and is not ready", pod.Name)
		}
	}
	f.Until("m3 ends", func() (bool, string) {
		got, err := p.GetPod(t.Context(), "default", "m3")
		return err == nil && got.Status.Phase == corev1.PodSucceeded, fmt.Sprint(got, err)
	})
	if took := time.Since(begin); took > time.Minute+keptFor+5*DefaultStatusInterval {
		t.Errorf("the end after a minute was told after %s", took)
	}
	for _, pod := range pods {
		f.remove(p, pod)
	}
	for _, pod := range pods {
		if n := f.plugin.submitted(pod.UID); n != 1 || f.plugin.has(pod.UID) {
			t.Errorf("pod %s: %d jobs were submitted, and one is left: %t", pod.Name, n, f.plugin.has(pod.UID))
		}
	}
}

// TestPublishedA1RestartSubmitsNoPodAgain checks a plugin that repeats an answer from before the submission
// while the next process of the node looks for its pods. A pod that is deleted then leaves no job.
func TestPublishedA1RestartSubmitsNoPodAgain(t *testing.T) {
	inMode(t, "", func(t *testing.T, f *outside) {
		p, stop := f.start()
		pods := []*corev1.Pod{f.pod("m1", "600"), f.pod("m2", "600"), f.pod("m3", "600")}
		for _, pod := range pods {
			pod.CreationTimestamp = metav1.Now()
			f.create(p, pod)
		}
		stop()
		f.server.forgetAll() // the server restarts too
		time.Sleep(2 * time.Second)
		p, _ = f.start()
		if _, err := p.GetPods(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := p.GetPod(t.Context(), "default", "m2"); errdefs.IsNotFound(err) {
			t.Errorf("m2, which runs: %v", err)
		}
		f.remove(p, pods[0])
		for _, pod := range pods[1:] {
			f.again("create "+pod.Name, func() error { return p.CreatePod(t.Context(), pod.DeepCopy()) })
			f.UntilRuns(p, pod)
			if n := f.plugin.submitted(pod.UID); n != 1 {
				t.Errorf("pod %s: %d jobs", pod.Name, n)
			}
		}
		if f.plugin.has(pods[0].UID) {
			t.Error("the job of the pod that was deleted is left")
		}
	})
}

// TestPublishedA1KeptAnswerAboutOthersSubmitsNoPodAgain checks a plugin that repeats an answer about another pod
// after a restart of the node.
func TestPublishedA1KeptAnswerAboutOthersSubmitsNoPodAgain(t *testing.T) {
	inMode(t, "", func(t *testing.T, f *outside) {
		p, stop := f.start()
		first := f.pod("m1", "600")
		first.CreationTimestamp = metav1.Now()
		f.create(p, first)
		f.UntilRuns(p, first)
		f.plugin.set(func(s *published) { s.kept = []wire.PodStatus{s.say(first, s.jobs[first.UID])}; s.keptAt = time.Now() })
		second := f.pod("m2", "600")
		second.CreationTimestamp = metav1.Now()
		f.create(p, second)
		stop()
		time.Sleep(2 * time.Second)
		p, _ = f.start()
		if _, err := p.GetPods(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.again("create m2", func() error { return p.CreatePod(t.Context(), second.DeepCopy()) })
		f.UntilRuns(p, second)
		if n := f.plugin.submitted(second.UID); n != 1 {
			t.Errorf("%d jobs were submitted, want 1", n)
		}
	})
}

// TestPublishedA1NewPodDoesNotWait checks that a pod that is created after the start of this process is
// submitted at once: no earlier process can have submitted it.
func TestPublishedA1NewPodDoesNotWait(t *testing.T) {
	inMode(t, "", func(t *testing.T, f *outside) {
		p, _ := f.start()
		if _, err := p.GetPods(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		pod := f.pod("m1", "600")
		pod.CreationTimestamp = metav1.Now().Rfc3339Copy()
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Error(err)
		}
	})
}

// TestPublishedA1CreatesLoseNoPod checks that other pods stay while pods are created. Each create looks for its
// pod, and a plugin that repeats its answers then has no answer about the others.
func TestPublishedA1CreatesLoseNoPod(t *testing.T) {
	inMode(t, "", func(t *testing.T, f *outside) {
		p, _ := f.start()
		var pods []*corev1.Pod
		for i := range 200 {
			pod := f.pod(fmt.Sprintf("m%d", i), "6000")
			f.create(p, pod)
			pods = append(pods, pod)
			time.Sleep(900 * time.Millisecond)
			if n := len(p.Cache().All()); n != len(pods) {
				t.Fatalf("after %d creates %d pods are known", len(pods), n)
			}
		}
		for _, pod := range pods {
			f.UntilRuns(p, pod)
			if n := f.plugin.submitted(pod.UID); n != 1 {
				t.Errorf("pod %s: %d jobs", pod.Name, n)
			}
		}
	})
}

// TestPublishedA4LostPodIsSeen checks, with each plugin, that a pod is gone some time after the plugin has lost
// its job.
func TestPublishedA4LostPodIsSeen(t *testing.T) {
	inMode(t, "", func(t *testing.T, f *outside) {
		p, _ := f.start()
		pods := []*corev1.Pod{f.pod("m1", "600"), f.pod("m2", "600"), f.pod("m3", "600")}
		for _, pod := range pods {
			f.create(p, pod)
		}
		for _, pod := range pods {
			f.UntilRuns(p, pod)
		}
		f.plugin.set(func(s *published) { delete(s.jobs, pods[1].UID) })
		begin := time.Now()
		f.UntilGone(p, pods[1])
		if took := time.Since(begin); took < missingFor || took > 2*missingFor {
			t.Errorf("it was missing for %s, want %s and not more than twice as long", took, missingFor)
		}
		f.UntilRuns(p, pods[0])
		f.UntilRuns(p, pods[2])
	})
}

// TestPublishedA5OnePodFailsNoOther checks the Slurm plugin, which answers 500 about all pods of a request when
// the files of one job are gone (pkg/slurm/Status.go). The ends of the other pods are reported, and the pod
// stays unchanged.
func TestPublishedA5OnePodFailsNoOther(t *testing.T) {
	inMode(t, "", func(t *testing.T, f *outside) {
		p, stop := f.start()
		pods := []*corev1.Pod{f.pod("m1", "600"), f.pod("m2", "90"), f.pod("m3", "90")}
		for _, pod := range pods {
			pod.CreationTimestamp = metav1.Now()
			f.create(p, pod)
		}
		for i, pod := range pods {
			pods[i] = f.UntilRuns(p, pod)
			if err := f.Pods.Update(pods[i]); err != nil {
				t.Fatal(err)
			}
		}
		f.plugin.set(func(s *published) { s.broken[pods[0].UID] = true })
		ends := func() {
			for _, name := range []string{"m2", "m3"} {
				f.Until(name+" ends", func() (bool, string) {
					got, err := p.GetPod(t.Context(), "default", name)
					return err == nil && got.Status.Phase == corev1.PodSucceeded, fmt.Sprint(got, err)
				})
			}
			for range 100 {
				if got, err := p.GetPod(t.Context(), "default", "m1"); errdefs.IsNotFound(err) || got != nil && got.Status.Phase != corev1.PodRunning {
					t.Fatalf("the pod for which the plugin fails: %v, %v", got, err)
				}
				time.Sleep(time.Second)
			}
		}
		ends()
		stop()
		p, _ = f.start()
		ends()
		f.plugin.set(func(s *published) { s.broken = map[types.UID]bool{} })
		f.UntilRuns(p, pods[0])
	})
}

// TestPublishedA6WordsOfAPluginReachThePod checks that a plugin's message is readable although the API server of
// 2026 escapes it as HTML (pkg/interlink/api/handler.go).
func TestPublishedA6WordsOfAPluginReachThePod(t *testing.T) {
	plugin := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `sbatch: error: invalid partition specified: "gpu" & <none>`, http.StatusInternalServerError)
	})
	c, err := newClient(Config{URL: "http://site.test"})
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = direct{&double{sidecar: &http.Client{Transport: direct{plugin}}, cache: map[string]wire.PodStatus{}}}
	pod := goldenPod()
	_, err = c.create(t.Context(), wire.Create{Pod: pod})
	if !ofPlugin(err) || err.Error() != `interLink, create#1: sbatch: error: invalid partition specified: "gpu" & <none>` {
		t.Errorf("the error is %v", err)
	}
}

// TestNotFoundOfARouteIsNoProof checks that a 404 counts only if it comes from the plugin and is about a pod,
// and not if it comes from a proxy or is about a path.
func TestNotFoundOfARouteIsNoProof(t *testing.T) {
	for words, want := range map[string]bool{
		"HTTP InterLink session status#1:  call exit status: 500. Body: {&#34;detail&#34;:&#34;No containers found for UUID&#34;}": true,
		"HTTP InterLink session status#1: call exit status: 500. Body: {\"error\":\"Pod not found\"}":                              true,
		"call exit status: 500. Body: {\"error\":\"Pod not found\"}":                                                               true,
		"no pod with the UID u1": true,
		"HTTP InterLink session status#1:  call exit status: 500. Body: {&#34;detail&#34;:&#34;Not Found&#34;}": false,
		"HTTP InterLink session status#1:  call exit status: 500. Body: &lt;html&gt;nginx&lt;/html&gt;":         false,
		"HTTP InterLink session status#1:  call exit status: 500. Body: ":                                       false,
		"<html>nginx</html>": false,
		"404 page not found": false,
		"":                   false,
	} {
		err := refusal(&http.Response{StatusCode: http.StatusNotFound, Body: io.NopCloser(strings.NewReader(words))}, "status#1")
		if got := lacksPod(err, "u1"); got != want {
			t.Errorf("404 with %q says that the pod is not there: %t, want %t", words, got, want)
		}
	}
	if lacksPod(errors.New("EOF"), "u1") {
		t.Error("an error without an answer says that the pod is not there")
	}
}

func (p *published) has(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.jobs[uid] != nil
}

// counting counts requests, and delays each of them.
type counting struct {
	next http.RoundTripper
	n    atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	time.Sleep(time.Millisecond)
	return c.next.RoundTrip(r)
}

// TestPublishedA2ManyPodsAreNotManyRequests checks that a plugin that answers only about the first pod of a
// request is asked about each pod separately, but not about all of them each second. Ends, losses and deletes
// are reported nevertheless.
func TestPublishedA2ManyPodsAreNotManyRequests(t *testing.T) {
	inMode(t, "", func(t *testing.T, f *outside) {
		p, _ := f.start()
		requests := &counting{next: p.client.http.Transport}
		p.client.http.Transport = requests
		var pods []*corev1.Pod
		for i := range 60 {
			pods = append(pods, f.pod(fmt.Sprintf("m%d", i), "6000"))
			f.create(p, pods[i])
		}
		for _, pod := range pods {
			f.UntilRuns(p, pod)
		}
		before := requests.n.Load()
		time.Sleep(time.Minute)
		if n, most := requests.n.Load()-before, int64(60*(aloneAtOnce+2)); n > most {
			t.Errorf("%d requests in a minute for %d pods, want %d at most", n, len(pods), most)
		}
		f.plugin.set(func(s *published) {
			delete(s.jobs, pods[1].UID)
			s.jobs[pods[2].UID].ends = time.Now()
		})
		f.remove(p, pods[3])
		f.UntilGone(p, pods[1])
		f.Until("m2 ends", func() (bool, string) {
			got, err := p.GetPod(t.Context(), "default", "m2")
			return err == nil && got.Status.Phase == corev1.PodSucceeded, fmt.Sprint(got, err)
		})
		if n := len(p.Cache().All()); n != len(pods)-2 {
			t.Errorf("%d pods are known, want %d", n, len(pods)-2)
		}
	})
}

// TestPublishedA5OnePodHidesNoOther checks that, while the plugin fails for one pod, the end of another pod is
// reported, and a deleted pod is gone.
func TestPublishedA5OnePodHidesNoOther(t *testing.T) {
	inMode(t, "", func(t *testing.T, f *outside) {
		p, _ := f.start()
		pods := []*corev1.Pod{f.pod("m1", "6000"), f.pod("m2", "6000"), f.pod("m3", "90"), f.pod("m4", "6000")}
		for i, pod := range pods {
			pod.UID = types.UID(fmt.Sprintf("u%d", i))
			f.create(p, pod)
		}
		for _, pod := range pods {
			f.UntilRuns(p, pod)
		}
		f.plugin.set(func(s *published) { s.broken[pods[0].UID] = true })
		f.remove(p, pods[3])
		f.Until("m3 ends", func() (bool, string) {
			got, err := p.GetPod(t.Context(), "default", "m3")
			return err == nil && got.Status.Phase == corev1.PodSucceeded, fmt.Sprint(got, err)
		})
		if got, err := p.GetPod(t.Context(), "default", "m1"); err != nil || got.Status.Phase != corev1.PodRunning {
			t.Errorf("the pod for which the plugin fails: %v, %v", got, err)
		}
	})
}
