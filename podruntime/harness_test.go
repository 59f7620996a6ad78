// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/image"
)

// world is a machine with a runtime, and a process that runs pods on this machine, in fake time.
type world struct {
	*fakecri.Runtime
	t       *testing.T
	root    string
	runtime *Runtime // of the current process
	kill    func()   // ends that process

	mu      sync.Mutex
	reports map[types.UID][]corev1.PodStatus // guarded by mu
	events  []string                         // guarded by mu
	logged  []string                         // guarded by mu: warnings
	secrets int                              // guarded by mu: the number of reads of the Secret
	space   image.Disk                       // guarded by mu: of images
	// evictionHard is the setting of the next process, and measure changes the measurements of the machine.
	evictionHard map[string]string
	// configure changes the configuration of the next process.
	configure func(*Config)
	measure   func(func(context.Context) (*statsv1alpha1.Summary, error)) func(context.Context) (*statsv1alpha1.Summary, error)
	// heard is called at the delivery of each report.
	heard func(*corev1.Pod)
	// environment returns a container with its environment. If environment is nil, the container is as in the
	// pod.
	environment func(pod *corev1.Pod, name string) (*corev1.Container, error)
}

// inWorld runs a test in a bubble of its own.
func inWorld(t *testing.T, config fakecri.Config, test func(*testing.T, *world)) {
	t.Helper()
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{Runtime: fakecri.New(config), t: t, root: root, reports: map[types.UID][]corev1.PodStatus{}, space: image.Disk{Capacity: 100 << 30, Available: 50 << 30}}
		w.AddImage(fakecri.Image{Name: "app", Size: 7})
		w.start()
		defer func() { w.kill() }() // also if the test has failed
		test(t, w)
	})
}

// start starts a new process on the runtime, as after kill.
func (w *world) start() {
	w.t.Helper()
	client := w.Client()
	config := Config{
		Runtime: client, Images: client, Recorder: recorder{w}, EvictionHard: w.evictionHard, Root: w.root + "/pods", LogRoot: w.root + "/logs",
		Node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "vk"},
			Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}},
		},
	}
	if w.configure != nil {
		w.configure(&config)
	}
	r, err := New(config)
	if err != nil {
		w.t.Fatal(err)
	}
	r.collector.Disk = func(context.Context) (image.Disk, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.space, nil
	}
	if w.measure != nil {
		r.evictor.summary = w.measure(r.usage.stats.Summary)
	}
	r.UsePodObjects(objects{w})
	ctx, cancel := context.WithCancel(log.WithLogger(context.Background(), logger{Logger: log.L, w: w}))
	r.NotifyPods(ctx, func(pod *corev1.Pod) {
		if w.heard != nil {
			w.heard(pod)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if ctx.Err() == nil {
			w.reports[pod.UID] = append(w.reports[pod.UID], *pod.Status.DeepCopy())
		}
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := r.RunInBackground(ctx); err != nil {
			w.t.Errorf("run in the background: %v", err)
		}
	}()
	w.runtime = r
	w.kill = func() { cancel(); <-ended }
}

// restart kills the process and starts a new one. As the pod controller does, it then updates the pods, with
// their last known status.
func (w *world) restart(pods ...*corev1.Pod) {
	w.kill()
	w.start()
	for _, p := range pods {
		again := p.DeepCopy()
		if last := w.last(p.UID); last != nil {
			again.Status = *last
		}
		if err := w.runtime.UpdatePod(w.t.Context(), again); err != nil {
			w.t.Fatal(err)
		}
	}
}

// create asks the runtime to create a pod.
func (w *world) create(pod *corev1.Pod) {
	w.t.Helper()
	if err := w.runtime.CreatePod(w.t.Context(), pod.DeepCopy()); err != nil {
		w.t.Fatal(err)
	}
}

// delete asks the runtime to delete a pod.
func (w *world) delete(pod *corev1.Pod, grace int64) {
	w.t.Helper()
	p := pod.DeepCopy()
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, &grace
	if err := w.runtime.DeletePod(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

// last returns the last reported status, or nil if there is none.
func (w *world) last(uid types.UID) *corev1.PodStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.reports[uid]); n > 0 {
		return w.reports[uid][n-1].DeepCopy()
	}
	return nil
}

// await waits until is returns true for the reported status, for at most an hour.
func (w *world) await(pod *corev1.Pod, what string, is func(*corev1.PodStatus) bool) *corev1.PodStatus {
	w.t.Helper()
	for end := time.Now().Add(time.Hour); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		synctest.Wait()
		if s := w.last(pod.UID); s != nil && is(s) {
			return s
		}
	}
	w.t.Fatalf("pod %s is not %s: %s\ncalls: %v\nevents: %v", pod.Name, what, dump(w.last(pod.UID)), w.Changes(), w.eventsOf(""))
	return nil
}

func (w *world) awaitRunning(pod *corev1.Pod) *corev1.PodStatus {
	w.t.Helper()
	return w.await(pod, "running", func(s *corev1.PodStatus) bool {
		return s.Phase == corev1.PodRunning && !slices.ContainsFunc(s.ContainerStatuses, func(c corev1.ContainerStatus) bool { return !c.Ready })
	})
}

// awaitGone waits until the provider no longer has the pod.
func (w *world) awaitGone(pod *corev1.Pod) {
	w.t.Helper()
	for end := time.Now().Add(time.Hour); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		synctest.Wait()
		if _, err := w.runtime.GetPod(w.t.Context(), pod.Namespace, pod.Name); err != nil {
			return
		}
	}
	w.t.Fatalf("pod %s is still there: %s", pod.Name, dump(w.last(pod.UID)))
}

// eventsOf returns the events that contain the text, in order.
func (w *world) eventsOf(text string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for _, e := range w.events {
		if strings.Contains(e, text) {
			found = append(found, e)
		}
	}
	return found
}

func dump(s *corev1.PodStatus) string {
	if s == nil {
		return "nothing was reported"
	}
	return fmt.Sprintf("%+v", *s)
}

// recorder records events as "reason message (field)".
type recorder struct{ w *world }

func (r recorder) Event(object runtime.Object, _, reason, message string) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	ref, _ := object.(*corev1.ObjectReference)
	where := ""
	if ref != nil && ref.FieldPath != "" {
		where = " (" + ref.FieldPath + ")"
	}
	r.w.events = append(r.w.events, reason+" "+message+where)
}

func (r recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (r recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.Eventf(object, kind, reason, format, args...)
}

var _ record.EventRecorder = recorder{}

// objects replaces the API server.
type objects struct{ w *world }

func (objects) ConfigMap(_ context.Context, _ *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

func (o objects) Secret(_ context.Context, _ *corev1.Pod, name string) (*corev1.Secret, error) {
	if name == canary {
		o.w.mu.Lock()
		defer o.w.mu.Unlock()
		o.w.secrets++
		return &corev1.Secret{Data: map[string][]byte{"key": []byte(canary + o.w.root)}}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}

func (o objects) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	if o.w.environment != nil {
		return o.w.environment(pod, name)
	}
	return containerNamed(pod, name).DeepCopy(), nil
}

// podOf returns a pod with these containers, of the image app.
func podOf(name string, containers ...string) *corev1.Pod {
	grace := int64(30)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{
			NodeName: "vk", RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace, DNSPolicy: corev1.DNSDefault,
		},
	}
	for _, c := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: c, Image: "app", ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePath: "/dev/termination-log",
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		})
	}
	return pod
}

// onDisk reports whether a file exists.
func onDisk(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
