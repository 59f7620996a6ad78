// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/memapi"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// world is a pod controller between an API server and a backend, in fake time.
type world struct {
	*testing.T
	api      *memapi.API
	backend  *memory.Backend
	recorder *record.FakeRecorder
	objects  *fake.Clientset
	ctl      *PodController
	configs  []func(*PodControllerConfig)
	wall     func() time.Time // nil: the clock of the bubble
	fence    *lease.Fence     // nil: no lease guard
	logger   log.Logger       // nil: no log
	but      []string         // invariants that the test breaks on purpose

	stop context.CancelFunc
	done chan error
}

// inWorld runs a test in a bubble. The test fails if a goroutine outlives Run, or if the histories of the API server and the backend break
// an invariant.
func inWorld(t *testing.T, b *memory.Backend, test func(w *world), configs ...func(*PodControllerConfig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, api: memapi.New(), backend: b, recorder: record.NewFakeRecorder(1 << 14), objects: fake.NewClientset(), configs: configs}
		w.api.Witness = witness(b.Recorder)
		defer func() { b.Heal(); w.halt() }() // also if the test fails early
		test(w)
		history := b.Recorder.History() // before the end, whose effects have no time to settle
		b.Heal()
		w.halt()
		for _, fault := range b.Faults() {
			t.Error(fault)
		}
		for _, violation := range ledger.Check(history, w.but...) {
			t.Error(violation)
		}
	})
}

// witness records the changes in the API server. Changes by the test count as changes by other clients.
func witness(r *ledger.Recorder) func(memapi.Version) {
	last := map[types.UID]*corev1.Pod{}
	return func(v memapi.Version) {
		switch {
		case v.Kind == watch.Deleted && v.By != memapi.Client:
			r.Force(v.Pod.UID)
		case v.Kind == watch.Modified && v.By == memapi.Test:
			r.Wrote(last[v.Pod.UID], v.Pod)
		case v.By == memapi.Accident:
			r.Restored(v.Pod.UID)
		}
		last[v.Pod.UID] = v.Pod
		r.Saw(v.Kind, v.Pod)
	}
}

// start starts the daemon.
func (w *world) start() {
	w.Helper()
	w.launch()
	<-w.ctl.Ready()
	synctest.Wait()
}

// launch is start for a daemon that may never become ready.
func (w *world) launch() {
	w.Helper()
	ctx, cancel := context.WithCancel(log.WithLogger(w.Context(), w.logger))
	factory := informers.NewSharedInformerFactory(w.objects, 0)
	pods := w.api.Informer(time.Minute)
	cfg := PodControllerConfig{
		PodClient: w.api, PodInformer: pods, EventRecorder: w.recorder, Provider: memory.Notifying{Backend: w.backend},
		ConfigMapInformer: factory.Core().V1().ConfigMaps(), SecretInformer: factory.Core().V1().Secrets(),
		ServiceInformer: factory.Core().V1().Services(),
	}
	for _, change := range w.configs {
		change(&cfg)
	}
	ctl, err := NewPodController(cfg)
	if err != nil {
		w.Fatal(err)
	}
	if w.wall != nil {
		ctl.worker.deadlines.wall = w.wall
	}
	factory.Start(ctx.Done())
	informed := make(chan struct{})
	go func() { defer close(informed); pods.Informer().RunWithContext(ctx) }()
	ctl.fence = w.fence
	w.ctl, w.done = ctl, make(chan error, 1)
	w.stop = func() { cancel(); <-informed; factory.Shutdown() }
	go func() { w.done <- ctl.Run(ctx, 4) }()
}

// halt stops the daemon and waits for its end.
func (w *world) halt() {
	w.Helper()
	if w.stop == nil {
		return
	}
	w.stop()
	w.stop = nil
	if err := <-w.done; err != nil {
		w.Errorf("Run returned %v", err)
	}
}

// drain drains the node permanently.
func (w *world) drain(ctx context.Context, groups ...DrainGroup) error {
	w.backend.Recorder.Drain()
	return w.ctl.Drain(ctx, groups...)
}

// pass advances the time.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// bound returns a pod as the scheduler leaves it.
func bound(name string, uid types.UID) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: uid},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// phase returns the phase of a pod in the API server, or "" without a pod.
func (w *world) phase(name string) corev1.PodPhase {
	if p := w.api.Pod("d", name); p != nil {
		return p.Status.Phase
	}
	return ""
}

func (w *world) wantPhase(name string, want corev1.PodPhase) {
	w.Helper()
	if got := w.phase(name); got != want {
		w.Errorf("pod %s is %q, want %q", name, got, want)
	}
}

func (w *world) wantWrites(key string, want ...string) {
	w.Helper()
	var got []string
	for _, write := range w.api.Writes(key) {
		got = append(got, write.Verb)
	}
	if len(got) != len(want) {
		w.Errorf("writes of %s are %q, want %q: %+v", key, got, want, w.api.Writes(key))
		return
	}
	for i := range want {
		if got[i] != want[i] {
			w.Errorf("writes of %s are %q, want %q", key, got, want)
		}
	}
}

// events returns the events since the last call.
func (w *world) events() (out []string) {
	for {
		select {
		case e := <-w.recorder.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

// silent replaces the provider by one that does not report.
func silent(cfg *PodControllerConfig) { cfg.Provider = cfg.Provider.(memory.Notifying).Backend }

// wantCalls fails the test unless exactly these mutating calls were made.
func wantCalls(t *testing.T, b *memory.Backend, want ...string) {
	t.Helper()
	if got := b.Calls(); !slices.Equal(got, want) {
		t.Errorf("calls are %q, want %q", got, want)
	}
}
