// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestServerRestartsUnderPods checks that pods stay unchanged while the server is away, and that everything goes
// on when it is back.
func TestServerRestartsUnderPods(t *testing.T) {
	h := newHome(t)
	p, _ := h.start()
	var pods []*corev1.Pod
	for i := range 50 {
		pod := h.Pod("default", fmt.Sprintf("pod-%d", i), stays())
		h.Create(p, pod)
		pods = append(pods, pod)
	}
	for _, pod := range pods {
		h.UntilRuns(p, pod)
	}
	before := map[types.UID]int{}
	for _, pod := range pods {
		before[pod.UID] = len(h.ReportsOf(pod.UID))
	}
	h.stopServer()
	h.Until("Ping fails", func() (bool, string) { return p.Ping(h.Context()) != nil, "it answers" })
	failed := len(h.line.all())
	h.Until("requests fail", func() (bool, string) { return len(h.line.all()) > failed+2, "there is none" })
	for _, pod := range pods {
		if got, err := p.GetPod(h.Context(), pod.Namespace, pod.Name); err != nil || got.Status.Phase != corev1.PodRunning {
			t.Errorf("while the server is away: pod %s: %v, %v", pod.Name, got, err)
		}
	}
	h.startServer()
	h.Until("Ping answers", func() (bool, string) { err := p.Ping(h.Context()); return err == nil, fmt.Sprint(err) })
	more := h.Pod("default", "more", stays())
	h.Create(p, more)
	h.UntilRuns(p, more)
	for _, pod := range pods {
		if n := len(h.ReportsOf(pod.UID)); n != before[pod.UID] || h.cloud.Instances(pod.UID) != 1 {
			t.Errorf("pod %s: %d reports and %d instances, want %d and 1", pod.Name, n, h.cloud.Instances(pod.UID), before[pod.UID])
		}
	}
}

// TestPluginRestarts checks that pods go on and are reported when the plugin is back, and that nothing is
// submitted again.
func TestPluginRestarts(t *testing.T) {
	h := newHome(t)
	p, _ := h.start()
	pod, ends := h.Pod("default", "stays", stays()), h.Pod("default", "ends", program.Program{Stay: 3 * time.Second, Exit: 7})
	ends.Spec.RestartPolicy = corev1.RestartPolicyNever
	h.Create(p, pod)
	h.Create(p, ends)
	h.UntilRuns(p, pod)
	h.UntilRuns(p, ends)
	h.stopPlugin()
	h.Until("Ping fails", func() (bool, string) { return p.Ping(h.Context()) != nil, "it answers" })
	h.startPlugin()
	h.Until("the end is told", func() (bool, string) {
		got, err := p.GetPod(h.Context(), ends.Namespace, ends.Name)
		return err == nil && got.Status.Phase == corev1.PodFailed && got.Status.ContainerStatuses[0].State.Terminated.ExitCode == 7, fmt.Sprint(got, err)
	})
	if got := h.UntilRuns(p, pod); h.cloud.Instances(pod.UID) != 1 || got.Annotations[wire.AnnotationJob] == "" {
		t.Errorf("after the restart: %d instances, annotations %v", h.cloud.Instances(pod.UID), got.Annotations)
	}
	h.Delete(p, pod)
	h.UntilGone(p, pod)
	h.Delete(p, ends)
	h.UntilGone(p, ends)
	eventually(t, "the records to be gone", func() bool {
		left, _ := os.ReadDir(filepath.Join(h.dir, "state", "pods"))
		return len(left) == 0
	})
}

// TestProviderRestarts checks that a new provider finds its pods without writing anything.
func TestProviderRestarts(t *testing.T) {
	h := newHome(t)
	p, stop := h.start()
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	stop()
	p, _ = h.start()
	list, err := p.GetPods(h.Context())
	if err != nil || len(list) != 1 || list[0].Status.Phase != corev1.PodRunning || list[0].Annotations[wire.AnnotationJob] == "" {
		t.Fatalf("after a restart: %v, %v", list, err)
	}
	if err := p.UpdatePod(h.Context(), pod.DeepCopy()); err != nil {
		t.Error(err)
	}
	if n := h.line.count("POST /create") + h.line.count("DELETE /delete"); n != 0 {
		t.Errorf("a restart wrote: %q", h.line.all())
	}
}

// TestOneRequestForAllPods checks that the number of requests at rest does not grow with the number of pods.
func TestOneRequestForAllPods(t *testing.T) {
	h := newHome(t)
	p, _ := h.start()
	var pods []*corev1.Pod
	for i := range 20 {
		pod := h.Pod("default", fmt.Sprintf("pod-%d", i), stays())
		h.Create(p, pod)
		pods = append(pods, pod)
	}
	for _, pod := range pods {
		h.UntilRuns(p, pod)
	}
	begin, from := time.Now(), len(h.line.all())
	h.Until("ten answers", func() (bool, string) { return len(h.line.all())-from >= 20, "" })
	if took := time.Since(begin); took < 8*200*time.Millisecond {
		t.Errorf("20 requests in %s at an interval of 200 ms, want two for each interval", took)
	}
}

// TestKilledBetweenSubmissionAndAnswer checks that a repeated create finds the existing job, in each of 100
// rounds.
func TestKilledBetweenSubmissionAndAnswer(t *testing.T) {
	var mu sync.Mutex
	jobs := map[types.UID]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch r.URL.Path {
		case wire.PathCreate: // the plugin submits every request
			var in wire.Create
			_ = json.NewDecoder(r.Body).Decode(&in)
			jobs[in.Pod.UID]++
			if jobs[in.Pod.UID]+len(jobs)%2 == 1 { // every other answer is lost on the way
				panic(http.ErrAbortHandler)
			}
			_ = json.NewEncoder(w).Encode(wire.Created{PodUID: string(in.Pod.UID), JobID: "17"})
		case wire.PathStatus:
			var asked []corev1.Pod
			_ = json.NewDecoder(r.Body).Decode(&asked)
			out := []wire.PodStatus{}
			for _, a := range asked {
				if jobs[a.UID] > 0 {
					out = append(out, wire.PodStatus{UID: string(a.UID), Name: a.Name, Namespace: a.Namespace, JobID: "17"})
				}
			}
			_ = json.NewEncoder(w).Encode(out)
		}
	}))
	defer server.Close()
	h := &home{Home: newHome(t).Home, config: Config{URL: server.URL, earlier: time.Nanosecond}}
	for i := range 100 {
		pod := h.Pod("default", fmt.Sprintf("pod-%d", i), stays())
		if err := h.Pods.Add(pod); err != nil {
			t.Fatal(err)
		}
		p, stop := h.start()
		first := p.CreatePod(h.Context(), pod.DeepCopy())
		stop()
		p, stop = h.start() // killed and restarted
		if err := p.CreatePod(h.Context(), pod.DeepCopy()); err != nil {
			t.Fatalf("round %d: %v (the first: %v)", i, err, first)
		}
		stop()
		mu.Lock()
		n := jobs[pod.UID]
		mu.Unlock()
		if n != 1 {
			t.Fatalf("round %d: %d jobs", i, n)
		}
	}
}

// TestRefusalIsSaid checks that the error of the plugin or of its batch system reaches the caller with its kind,
// and that nothing of the pod is left.
func TestRefusalIsSaid(t *testing.T) {
	h := newHome(t)
	p, _ := h.start()
	pod := h.Pod("default", "refused", stays())
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](7)}
	err := p.CreatePod(h.Context(), pod)
	if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "spec.securityContext.fsGroup") {
		t.Errorf("a pod that the plugin cannot run: %v, want invalid input that names the field", err)
	}
	if left, _ := os.ReadDir(filepath.Join(h.dir, "state", "pods")); len(left) != 0 {
		t.Errorf("the plugin keeps %v of a pod that it refused", left)
	}
	for _, tt := range []struct {
		code int
		body string
		want string
		kind func(error) bool
	}{
		{500, "HTTP InterLink session create#2: call exit status: 500. Body: sbatch: error: invalid partition specified: gpu\n", ": sbatch: error: invalid partition specified: gpu", nil},
		{422, "HTTP InterLink session x: call exit status: 500. Body: no such field", ": no such field", errdefs.IsInvalidInput},
		{500, "", "without a word", nil},
		{302, "", "not accepted", nil},
		{401, "who are you", "not accepted: who are you", nil},
		{401, "HTTP InterLink session x: call exit status: 500. Body: the plugin wants its token", "interLink, create#1: the plugin wants its token", nil},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == wire.PathStatus {
				fmt.Fprint(w, "null")
				return
			}
			w.WriteHeader(tt.code)
			fmt.Fprint(w, tt.body)
		}))
		refused := &home{Home: h.Home, config: Config{URL: server.URL, earlier: time.Nanosecond}}
		p, stop := refused.start()
		err := p.CreatePod(h.Context(), h.Pod("default", "web", stays()))
		if err == nil || !strings.Contains(err.Error(), tt.want) || tt.kind == nil && errdefs.IsInvalidInput(err) || tt.kind != nil && !tt.kind(err) {
			t.Errorf("%d %q: got %v, want %q", tt.code, tt.body, err, tt.want)
		}
		stop()
		server.Close()
	}
}

// TestTokensAreSent checks that a projected token is in the container, with its mode.
func TestTokensAreSent(t *testing.T) {
	h := newHome(t)
	p, _ := h.start()
	pod := h.Pod("default", "web", program.Program{Show: []string{"/tokens/token"}, Stay: time.Hour})
	pod.Spec.Volumes = []corev1.Volume{{Name: "tokens", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o400), Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
	}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "tokens", MountPath: "/tokens"}}
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	h.Until("the token is printed", func() (bool, string) { s := h.Log(p, pod); return strings.Contains(s, "token-1-of-web"), s })
}

// TestWithoutServer checks that the provider works with the plugin directly.
func TestWithoutServer(t *testing.T) {
	h := newHome(t)
	h.config.URL = "unix://" + filepath.Join(h.dir, "plugin")
	p, stop := h.start()
	if err := p.Ping(h.Context()); err != nil {
		t.Fatal(err)
	}
	h.Put("default", "own", "hello from home")
	pod := h.Pod("default", "web", program.Program{Show: []string{"/own/key"}, Stay: time.Hour})
	pod.Spec.Volumes = []corev1.Volume{{Name: "own", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "own"}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: "/own"}}
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	h.Until("the Secret is printed", func() (bool, string) { s := h.Log(p, pod); return strings.Contains(s, "hello from home"), s })
	stop()
	p, _ = h.start()
	h.UntilRuns(p, pod)
	h.Delete(p, pod)
	h.UntilGone(p, pod)
	if n := h.cloud.Instances(pod.UID); n != 0 {
		t.Errorf("%d instances are left", n)
	}
}

// TestRequestsThatTheProtocolLacks checks that such requests are refused by name, but only for an existing pod.
func TestRequestsThatTheProtocolLacks(t *testing.T) {
	h := newHome(t)
	p, _ := h.start()
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	for what, err := range map[string]error{
		"exec":         p.RunInContainer(h.Context(), "default", "web", "main", []string{"ls"}, nil),
		"attach":       p.AttachToContainer(h.Context(), "default", "web", "main", nil),
		"port-forward": p.PortForward(h.Context(), "default", "web", 80, nil),
	} {
		if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "has no "+what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := p.RunInContainer(h.Context(), "default", "absent", "main", nil, nil); !errdefs.IsNotFound(err) {
		t.Errorf("exec in a pod that is not there: %v", err)
	}
	both := api.ContainerLogOpts{Tail: 1, LimitBytes: 2}
	if _, err := p.GetContainerLogs(h.Context(), "default", "web", "main", both); err != nil {
		t.Errorf("a tail with a limit, which the server refuses: %v", err)
	}
}
