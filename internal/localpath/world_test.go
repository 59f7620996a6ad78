// SPDX-License-Identifier: Apache-2.0

package localpath

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

// world is an API server, the directories of a machine, and one controller after another.
type world struct {
	*testing.T
	api    *fake.Clientset
	events *record.FakeRecorder
	stop   func()

	standsBy atomic.Bool

	mu   sync.Mutex
	dirs map[string]bool
	did  []string
	err  error // of every operation on directories
}

// inWorld runs a test in a bubble, where time is not real.
func inWorld(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: Driver}
		w := &world{T: t, api: fake.NewClientset(class), events: record.NewFakeRecorder(1000), dirs: map[string]bool{}}
		w.start()
		defer func() { w.stop() }()
		test(w)
	})
}

// start starts a controller.
func (w *world) start() {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	c := New(Config{Client: w.api, Watches: w.api, Node: "n", Hostname: "host", Recorder: w.events, Make: w.make, Remove: w.remove, StandsBy: w.standsBy.Load})
	go func() { done <- c.Run(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("Run returned %v", err)
		}
	}
	w.settle()
}

// settle waits until all due work is done.
func (w *world) settle() {
	time.Sleep(10 * time.Second)
	synctest.Wait()
}

func (w *world) make(_ context.Context, name string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did = append(w.did, "make "+name)
	if w.err == nil {
		w.dirs[name] = true
	}
	return "/volumes/" + name, w.err
}

func (w *world) remove(_ context.Context, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did = append(w.did, "remove "+name)
	if w.err == nil {
		delete(w.dirs, name)
	}
	return w.err
}

// has returns the names of the existing directories.
func (w *world) has() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(w.dirs)), " ")
}

func (w *world) breaks(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// said returns the events since the last call.
func (w *world) said() string {
	var all []string
	for {
		select {
		case e := <-w.events.Events:
			all = append(all, e)
		default:
			return strings.Join(all, "\n")
		}
	}
}

// claim creates a claim that the scheduler has assigned to the node.
func (w *world) claim(name string, change func(*corev1.PersistentVolumeClaim)) {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{annotationDriver: Driver, annotationNode: "n"}},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("local"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}}},
	}
	if change != nil {
		change(claim)
	}
	if _, err := w.api.CoreV1().PersistentVolumeClaims("ns").Create(w.Context(), claim, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.settle()
}

// forget deletes a claim.
func (w *world) forget(name string) {
	w.Helper()
	if err := w.api.CoreV1().PersistentVolumeClaims("ns").Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.settle()
}

// volumes returns the existing volumes, by name.
func (w *world) volumes() map[string]*corev1.PersistentVolume {
	w.Helper()
	list, err := w.api.CoreV1().PersistentVolumes().List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	all := map[string]*corev1.PersistentVolume{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

// change writes a volume.
func (w *world) change(name string, change func(*corev1.PersistentVolume)) {
	w.Helper()
	volume := w.volumes()[name]
	if volume == nil {
		w.Fatalf("there is no volume %s", name)
	}
	change(volume)
	if _, err := w.api.CoreV1().PersistentVolumes().Update(w.Context(), volume, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.settle()
}

func release(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased }

var errBroken = errors.New("the disk is broken")
