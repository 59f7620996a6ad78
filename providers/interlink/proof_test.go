// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// site is a server whose answers a test chooses.
type site struct {
	mu         sync.Mutex
	code       map[string]int           // guarded by mu; status codes other than 200, by path
	jobs       map[types.UID]int        // guarded by mu; the number of submissions
	hide       bool                     // guarded by mu; submitted pods are not reported yet
	answer     string                   // guarded by mu; the answer to creates, instead of a job
	containers []corev1.ContainerStatus // guarded by mu; the statuses of every pod
	requests   int                      // guarded by mu
	home       *remotetest.Home         // the cluster of the node
}

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if r.URL.Path == wire.PathCreate {
		var in wire.Create
		_ = json.NewDecoder(r.Body).Decode(&in)
		s.jobs[in.Pod.UID]++
	}
	if code := s.code[r.URL.Path]; code != 0 {
		http.Error(w, "<html>nginx</html>", code)
		return
	}
	switch r.URL.Path {
	case wire.PathCreate:
		if s.answer != "" {
			_, _ = io.WriteString(w, s.answer)
			return
		}
		_ = json.NewEncoder(w).Encode(wire.Created{JobID: "17"})
	case wire.PathStatus:
		var asked []corev1.Pod
		_ = json.NewDecoder(r.Body).Decode(&asked)
		out := []wire.PodStatus{}
		for i := range asked {
			if s.jobs[asked[i].UID] > 0 && !s.hide {
				out = append(out, wire.PodStatus{UID: string(asked[i].UID), JobID: "17", Containers: s.containers})
			}
		}
		_ = json.NewEncoder(w).Encode(out)
	}
}

func (s *site) set(f func(*site)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// atSite runs a test in a synctest bubble, with a server, a running provider of that server, and a pod.
func atSite(t *testing.T, test func(t *testing.T, s *site, p *provider, pod *corev1.Pod)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		test(t, s, s.provider(t), s.home.Pod("default", "web", stays()))
	})
}

func newSite(t *testing.T) *site {
	return &site{code: map[string]int{}, jobs: map[types.UID]int{}, home: remotetest.NewHome(t, "vk-0")}
}

// provider runs a new provider of the server.
func (s *site) provider(t *testing.T) *provider {
	t.Helper()
	return s.run(t, s.home.Input())
}

func (s *site) run(t *testing.T, in cli.ProviderInput) *provider {
	t.Helper()
	p, err := openProvider(in, Config{URL: "http://site.test"})
	if err != nil {
		t.Fatal(err)
	}
	p.client.http.Transport = direct{s}
	s.home.Run(p)
	synctest.Wait()
	return p
}

func (s *site) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// add adds a running pod to the cluster.
func (s *site) add(pod *corev1.Pod) {
	s.home.Helper()
	pod.Status.Phase = corev1.PodRunning
	if err := s.home.Pods.Add(pod); err != nil {
		s.home.Fatal(err)
	}
}

// answer waits until the server was asked for states once more.
func (p *provider) answer() { after(DefaultStatusInterval) }

func after(d time.Duration) {
	time.Sleep(d) // in a bubble
	synctest.Wait()
}

// direct answers requests without a network, so that they work in a synctest bubble.
type direct struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	defer func() {
		if recover() != nil { // the handler closes the connection
			err = io.EOF
		}
	}()
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// TestNotFoundOfAProxyIsNoProof checks that a pod stays while a proxy before the server answers every request
// with 404. The pod is gone only when answers about states lack it.
func TestNotFoundOfAProxyIsNoProof(t *testing.T) {
	atSite(t, func(t *testing.T, s *site, p *provider, pod *corev1.Pod) {
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		p.answer()
		s.set(func(s *site) { s.hide = true })
		for range 2 {
			p.answer() // answers from before the stop do not count
		}
		s.set(func(s *site) { s.code[wire.PathDelete] = http.StatusNotFound })
		if err := p.DeletePod(t.Context(), pod); err == nil || errdefs.IsNotFound(err) {
			t.Fatalf("a 404 of a proxy: %v, want an error that is not of the kind not found", err)
		}
		if p.answer(); p.get(pod.UID) == nil {
			t.Error("an answer of before the stop counts")
		}
		s.set(func(s *site) { s.hide = false })
		if p.answer(); p.get(pod.UID) == nil {
			t.Error("a job that runs counts as gone")
		}
		s.set(func(s *site) { s.hide = true })
		if p.answer(); p.get(pod.UID) == nil {
			t.Error("one answer was enough")
		}
		if p.answer(); p.get(pod.UID) != nil {
			t.Error("two answers that lack it were not enough")
		}
		s.set(func(s *site) { s.code = map[string]int{wire.PathStatus: http.StatusNotFound} })
		if err := p.DeletePod(t.Context(), pod); err == nil || errdefs.IsNotFound(err) {
			t.Errorf("404 of %s: %v, want an error that is not of the kind not found", wire.PathStatus, err)
		}
	})
}

// TestServerThatDoesNotForget checks that states are reported although the hint to forget a pod fails.
func TestServerThatDoesNotForget(t *testing.T) {
	for _, code := range []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusInternalServerError} {
		atSite(t, func(t *testing.T, s *site, p *provider, pod *corev1.Pod) {
			s.code[wire.PathUpdateCache] = code
			if err := p.DeletePod(t.Context(), pod); !errdefs.IsNotFound(err) {
				t.Errorf("%d: delete of a pod that is not there: %v", code, err)
			}
			if err := p.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			s.set(func(s *site) {
				s.containers = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
			})
			if p.answer(); p.get(pod.UID).Status.Phase != corev1.PodRunning {
				t.Errorf("%d: phase %s", code, p.get(pod.UID).Status.Phase)
			}
		})
	}
}

// TestEndedPodIsDeletedAtItsPlugin checks the deletion of an ended pod while a proxy answers with 404. The
// request is repeated until the plugin has it, or until answers lack the pod. Otherwise the pod's records and
// its name would stay at the plugin.
func TestEndedPodIsDeletedAtItsPlugin(t *testing.T) {
	for _, before := range []bool{true, false} { // whether the pod has ended before the delete
		atSite(t, func(t *testing.T, s *site, p *provider, pod *corev1.Pod) {
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			end := func() {
				s.set(func(s *site) {
					s.containers = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
				})
				p.answer()
			}
			if err := p.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			p.answer()
			if before {
				end()
			}
			s.set(func(s *site) { s.code[wire.PathDelete] = http.StatusNotFound })
			for range 2 {
				if err := p.DeletePod(t.Context(), pod); err == nil || errdefs.IsNotFound(err) {
					t.Errorf("a 404 of a proxy: %v, want an error that is not of the kind not found", err)
				}
			}
			end()
			if p.get(pod.UID) == nil {
				t.Error("it counts as gone while the server tells of it")
			}
			s.set(func(s *site) { delete(s.code, wire.PathDelete) })
			if err := p.DeletePod(t.Context(), pod); err != nil || p.get(pod.UID) != nil {
				t.Errorf("deleted: %v, and still there: %t", err, p.get(pod.UID) != nil)
			}
		})
	}
}

// TestPodThatIsNotToldOfYetIsNotGone checks a delete that is answered with 404 before the plugin reports the
// job.
func TestPodThatIsNotToldOfYetIsNotGone(t *testing.T) {
	atSite(t, func(t *testing.T, s *site, p *provider, pod *corev1.Pod) {
		s.set(func(s *site) { s.hide, s.code[wire.PathDelete] = true, http.StatusNotFound })
		begin := time.Now()
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		for err := p.DeletePod(t.Context(), pod); !errdefs.IsNotFound(err); err = p.DeletePod(t.Context(), pod) {
			if err == nil || time.Since(begin) > 2*unseenFor {
				t.Fatalf("after %s: %v", time.Since(begin), err)
			}
			p.answer()
		}
		if took := time.Since(begin); took < unseenFor {
			t.Errorf("gone after %s, want %s", took, unseenFor)
		}
	})
}

// TestImageIsRefusedEachTime checks that each change of an image is refused, because a job keeps its images, and
// that the reported pod keeps them too.
func TestImageIsRefusedEachTime(t *testing.T) {
	for _, init := range []bool{false, true} {
		atSite(t, func(t *testing.T, s *site, p *provider, pod *corev1.Pod) {
			p.UsePodObjects(withInit{s.home})
			pod.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "program"}}
			if err := p.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			other := pod.DeepCopy()
			other.Labels["new"] = "label"
			if init {
				other.Spec.InitContainers[0].Image = "other"
			} else {
				other.Spec.Containers[0].Image = "other"
			}
			for range 2 {
				if err := p.UpdatePod(t.Context(), other); !errdefs.IsInvalidInput(err) {
					t.Errorf("another image: %v, want a refusal", err)
				}
			}
			got := p.get(pod.UID)
			if got.Spec.Containers[0].Image != "program" || got.Spec.InitContainers[0].Image != "program" || got.Labels["new"] != "label" {
				t.Errorf("the job has %+v, labels %v", got.Spec, got.Labels)
			}
		})
	}
}
