// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// refuses is a provider that refuses every pod.
type refuses struct {
	nodeutil.Provider
	err error
}

func (r refuses) CreatePod(context.Context, *corev1.Pod) error { return r.err }

func newServer(t *testing.T, wrap func(nodeutil.Provider) nodeutil.Provider) *server {
	t.Helper()
	kept, err := openStore(filepath.Join(t.TempDir(), "pods"))
	if err != nil {
		t.Fatal(err)
	}
	o := newObjects()
	config := o.config(&corev1.Node{}, nil)
	p := &pods{
		runner: "inprocess", store: kept, objects: o, ctx: t.Context(), all: map[types.UID]*pod{}, busy: map[types.UID]chan struct{}{},
		provider: inprocess.Open(inprocess.New(t.Context()), inprocess.Objects{ConfigMaps: config.ConfigMaps, Secrets: config.Secrets}),
	}
	if wrap != nil {
		p.provider = wrap(p.provider)
	}
	s := &server{pods: p}
	s.offered(&corev1.Node{})
	return s
}

func (s *server) send(t *testing.T, method, path string, body any) (int, string) {
	t.Helper()
	data, ok := body.([]byte)
	if !ok {
		data, _ = json.Marshal(body)
	}
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequest(method, path, bytes.NewReader(data)))
	answer, _ := io.ReadAll(w.Result().Body)
	return w.Code, string(answer)
}

func aPod(uid string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID(uid)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "program", Args: program.Program{Exit: 0}.Args()}}},
	}
}

// longPod returns a pod that runs until it is stopped.
func longPod(uid string) *corev1.Pod {
	pod := aPod(uid)
	pod.Spec.Containers[0].Args = program.Program{Stay: time.Hour}.Args()
	return pod
}

// untilRuns waits until the container of the pod has started, so that it has a log.
func (s *server) untilRuns(t *testing.T) {
	t.Helper()
	until(t, func() bool {
		status, err := s.pods.provider.GetPodStatus(t.Context(), "default", "web")
		return err == nil && status.Phase == corev1.PodRunning
	})
}

// TestBothForms checks that the plugin answers both the documented form of each request and the form that
// programs send, and no other form.
func TestBothForms(t *testing.T) {
	s := newServer(t, nil)
	if code, body := s.send(t, http.MethodPost, "/create", []wire.Retrieved{{Pod: longPod("u1")}}); code != 200 || !strings.Contains(body, `"PodUID":"u1"`) {
		t.Errorf("create of a list with one: %d %s", code, body)
	}
	if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: aPod("u1")}); code != 200 || !strings.Contains(body, `"PodJID":"inprocess-u1"`) {
		t.Errorf("create again: %d %s", code, body)
	}
	s.untilRuns(t)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if code, body := s.send(t, method, "/status", []*corev1.Pod{aPod("u1"), aPod("u2")}); code != 200 || !strings.Contains(body, `"UID":"u1"`) || strings.Contains(body, "u2") {
			t.Errorf("%s /status: %d %s", method, code, body)
		}
		if code, body := s.send(t, method, "/status", []*corev1.Pod{}); code != 200 || !strings.Contains(body, `"status":"ok"`) {
			t.Errorf("%s /status of none: %d %s", method, code, body)
		}
		if code, _ := s.send(t, method, "/getLogs", wire.Logs{PodUID: "u1", Container: "main"}); code != 200 {
			t.Errorf("%s /getLogs: %d", method, code)
		}
		if code, _ := s.send(t, method, "/system-info", nil); code != 200 {
			t.Errorf("%s /system-info: %d", method, code)
		}
	}
	for _, method := range []string{http.MethodDelete, http.MethodPost} {
		if code, body := s.send(t, method, "/delete", aPod("u1")); code != 200 || !strings.HasPrefix(body, "[{") {
			t.Errorf("%s /delete: %d %s", method, code, body)
		}
	}
	for path, method := range map[string]string{"/create": http.MethodGet, "/delete": http.MethodGet, "/status": http.MethodDelete, "/getLogs": http.MethodPut} {
		if code, _ := s.send(t, method, path, nil); code != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %d", method, path, code)
		}
	}
	if code, _ := s.send(t, http.MethodPost, "/delete", aPod("u9")); code != http.StatusNotFound {
		t.Errorf("delete of a pod that is not there: %d", code)
	}
}

// TestBadCreates checks that a bad create leaves nothing, and that the answer does not repeat the request.
func TestBadCreates(t *testing.T) {
	s := newServer(t, nil)
	escape := aPod("u1")
	escape.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}}
	out := func(path string) wire.Retrieved {
		return wire.Retrieved{Pod: escape, Containers: []wire.Container{{Projected: []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Data: map[string]string{path: "x"}}}}}}
	}
	for name, body := range map[string]any{
		"no JSON": []byte("canary"), "another type": []byte(`"canary"`), "two": []wire.Retrieved{{Pod: aPod("u1")}, {Pod: aPod("u2")}}, "no pod": wire.Retrieved{},
		"a path as UID": wire.Retrieved{Pod: aPod("../../etc/canary")}, "no UID": wire.Retrieved{Pod: aPod("")},
		"a file above": out("../canary"), "an absolute file": out("/etc/canary"), "a file above, later": out("a/../../canary"),
	} {
		code, answer := s.send(t, http.MethodPost, "/create", body)
		if code != http.StatusUnprocessableEntity || name == "no JSON" && strings.Contains(answer, "canary") {
			t.Errorf("%s: %d %s", name, code, answer)
		}
	}
	if left, _ := os.ReadDir(string(s.pods.store)); len(left) != 0 || len(s.pods.all) != 0 {
		t.Errorf("left: %v, %d pods", left, len(s.pods.all))
	}
}

// TestProviderRefuses checks that the answer has the provider's message and a status code for the kind of error,
// and that nothing is left.
func TestProviderRefuses(t *testing.T) {
	for want, err := range map[int]error{422: errdefs.InvalidInput("no such image"), 500: errors.New("no such image")} {
		s := newServer(t, func(p nodeutil.Provider) nodeutil.Provider { return refuses{p, err} })
		if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: aPod("u1")}); code != want || !strings.Contains(body, "no such image") {
			t.Errorf("got %d %s, want %d", code, body, want)
		}
		if left, _ := os.ReadDir(string(s.pods.store)); len(left) != 0 || len(s.pods.all) != 0 {
			t.Errorf("left: %v, %d pods", left, len(s.pods.all))
		}
	}
}

// TestNameOfAnotherPod checks that a pod waits until an earlier pod of the same name is gone.
func TestNameOfAnotherPod(t *testing.T) {
	s := newServer(t, nil)
	if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: aPod("u1")}); code != 200 {
		t.Fatal(code, body)
	}
	if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: aPod("u2")}); code != http.StatusConflict || !strings.Contains(body, "still here") {
		t.Errorf("got %d %s", code, body)
	}
}

// TestLogOfTheNextPod checks that a request with the UID of a pod that is gone does not get the log of the next
// pod of that name.
func TestLogOfTheNextPod(t *testing.T) {
	s := newServer(t, nil)
	log := func(uid string) int {
		code, _ := s.send(t, http.MethodPost, "/getLogs", wire.Logs{PodUID: uid, Container: "main"})
		return code
	}
	if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: longPod("u1")}); code != 200 {
		t.Fatal(code, body)
	}
	s.untilRuns(t)
	if code := log("u1"); code != 200 {
		t.Fatal(code)
	}
	old := s.pods.get("u1")
	if code, body := s.send(t, http.MethodPost, "/delete", aPod("u1")); code != 200 {
		t.Fatal(code, body)
	}
	until(t, func() bool { s.pods.mu.Lock(); defer s.pods.mu.Unlock(); return !old.gone.IsZero() })
	if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: longPod("u2")}); code != 200 {
		t.Fatal(code, body)
	}
	s.untilRuns(t)
	if first, second := log("u1"), log("u2"); first != http.StatusNotFound || second != http.StatusOK {
		t.Errorf("logs of the old and the new pod: %d and %d", first, second)
	}
	s.pods.mu.Lock()
	old.gone = time.Time{} // the provider has replaced the pod, and the plugin has not seen it yet
	s.pods.mu.Unlock()
	if code := log("u1"); code != http.StatusNotFound {
		t.Errorf("log of a pod that was replaced: %d", code)
	}
}

// lists is a provider whose list of pods the test can change.
type lists struct {
	nodeutil.Provider
	list *func([]*corev1.Pod) []*corev1.Pod
}

func (l lists) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	pods, err := l.Provider.GetPods(ctx)
	return (*l.list)(pods), err
}

// TestOneOldListLosesNoPod checks that one outdated list of a provider loses no pod. A pod is lost when lists
// have lacked it for a while.
func TestOneOldListLosesNoPod(t *testing.T) {
	var s *server
	stays := aPod("u1")
	stays.Spec.Containers[0].Args = program.Program{Stay: time.Hour}.Args()
	all := func(pods []*corev1.Pod) []*corev1.Pod { return pods }
	none := func([]*corev1.Pod) []*corev1.Pod { return nil }
	before := func([]*corev1.Pod) []*corev1.Pod { // the list is read before the pod is created
		if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: stays}); code != http.StatusOK {
			t.Fatal(code, body)
		}
		return nil
	}
	var list func([]*corev1.Pod) []*corev1.Pod
	s = newServer(t, func(p nodeutil.Provider) nodeutil.Provider { return lists{p, &list} })
	for i, step := range []struct {
		list   func([]*corev1.Pod) []*corev1.Pod
		passed time.Duration // since the previous list
		lost   bool
	}{
		{before, 0, false}, {none, 0, false}, {all, doubtedFor, false}, {none, doubtedFor, false}, {none, 0, false}, {none, doubtedFor / 2, false},
		{none, doubtedFor / 2, true}, {all, 0, false},
	} {
		list = step.list
		if k := s.pods.get("u1"); k != nil {
			k.without = k.without.Add(-step.passed)
		}
		if err := s.pods.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		told := s.pods.statuses([]*corev1.Pod{stays})
		if len(told) != 1 || (told[0].Containers[0].State.Terminated != nil) != step.lost {
			t.Errorf("list %d: told %+v, want lost: %v", i+1, told, step.lost)
		}
	}
}

// TestTold checks the reported status of pods: it has every container, and Terminated only for ended containers.
func TestTold(t *testing.T) {
	end := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	status := func(phase corev1.PodPhase, s corev1.ContainerState) *corev1.PodStatus {
		return &corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: s}}}
	}
	for name, tt := range map[string]struct {
		policy corev1.RestartPolicy
		status *corev1.PodStatus
		over   bool
		want   string
	}{
		"nothing yet":              {status: &corev1.PodStatus{}, want: "waiting ContainerCreating"},
		"runs":                     {status: status(corev1.PodRunning, runs), want: "running"},
		"ended, comes again":       {policy: corev1.RestartPolicyAlways, status: status(corev1.PodRunning, end(1)), want: "waiting CrashLoopBackOff"},
		"ended, for good":          {policy: corev1.RestartPolicyNever, status: status(corev1.PodRunning, end(1)), want: "terminated 1 "},
		"lost":                     {status: status(corev1.PodRunning, runs), over: true, want: "terminated 137 " + wire.ReasonLost},
		"evicted before it ran":    {status: &corev1.PodStatus{Phase: corev1.PodFailed, Message: "evicted"}, want: "terminated 137 " + wire.ReasonLost},
		"succeeded is not changed": {status: status(corev1.PodSucceeded, end(0)), want: "terminated 0 "},
	} {
		pod := aPod("u1")
		pod.Spec.RestartPolicy = tt.policy
		got := tell(pod, tt.status, "j", tt.over).Containers
		if len(got) != 1 || describe(got[0].State) != tt.want {
			t.Errorf("%s: got %+v, want %q", name, got, tt.want)
		}
	}
}

func describe(s corev1.ContainerState) string {
	switch {
	case s.Waiting != nil:
		return "waiting " + s.Waiting.Reason
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		data, _ := json.Marshal(s.Terminated.ExitCode)
		return "terminated " + string(data) + " " + s.Terminated.Reason
	}
	return "nothing"
}

// TestFilesKeepTheirModes checks that the files of a projected volume become files of a Secret, with their modes
// if the request has them.
func TestFilesKeepTheirModes(t *testing.T) {
	pod := aPod("u1")
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](0o440)}}}}
	r, err := newRecord(wire.Retrieved{Pod: pod, Containers: []wire.Container{{Projected: []corev1.ConfigMap{{
		ObjectMeta: metav1.ObjectMeta{Name: "v", Annotations: map[string]string{wire.AnnotationModes: `{"token":256}`}},
		Data:       map[string]string{"token": "t"}, BinaryData: map[string][]byte{"dir/raw": {0xff}},
	}}}}})
	if err != nil {
		t.Fatal(err)
	}
	source := r.Pod.Spec.Volumes[0].Secret
	if source == nil || len(r.Secrets) != 1 || source.SecretName != r.Secrets[0].Name || *source.DefaultMode != 0o440 || len(source.Items) != 2 {
		t.Fatalf("got %+v and %d Secrets", source, len(r.Secrets))
	}
	raw, token := source.Items[0], source.Items[1]
	if raw.Path != "dir/raw" || raw.Mode != nil || r.Secrets[0].Data[raw.Key][0] != 0xff {
		t.Errorf("got %+v", raw)
	}
	if token.Path != "token" || *token.Mode != 0o400 || string(r.Secrets[0].Data[token.Key]) != "t" {
		t.Errorf("got %+v", token)
	}
}

// TestCommandRefuses checks the refusal of an unknown runner, of a runner that would send pods in a circle, and
// of missing flags.
func TestCommandRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		`--runner "wings": want one of process`:     {"--runner", "wings", "--listen", "unix:///x"},
		`--runner "interlink": want one of process`: {"--runner", "interlink", "--listen", "unix:///x"},
		"--listen is missing":                       {},
		"--state-dir or":                            {"--listen", "unix:///x", "--state-dir", ""},
	} {
		cmd := Command([]cli.Provider{{Name: "process"}, {Name: "interlink"}})
		cmd.SetArgs(args)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

// TestDevicesHaveADomain checks that storage and huge pages do not count as devices, and that a device without a
// domain in its name is refused.
func TestDevicesHaveADomain(t *testing.T) {
	one := resource.MustParse("1")
	r := resources(corev1.ResourceList{corev1.ResourceCPU: one, "hugepages-2Mi": one, corev1.ResourceEphemeralStorage: one, "nvidia.com/gpu": one})
	if r.CPU != "1" || len(r.Accelerators) != 1 || r.Accelerators[0].ResourceType != "nvidia.com/gpu" {
		t.Errorf("got %+v", r)
	}
}
