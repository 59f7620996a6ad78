// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// namespace is the namespace of the groups of a fleet at its runner.
const namespace = "groups"

// Group is the workload behind one object of a service: a container group, or a task.
type Group struct {
	// ID is unique in the fleet, and valid as the name of a pod.
	ID string
	// Spec is the spec to run. Volumes that name a Secret get it from Files.
	Spec corev1.PodSpec
	// Files are the Secrets of the group by name: paths and contents.
	Files map[string]map[string][]byte
}

// Seen is a group as the service shows it.
type Seen struct {
	ID string
	// Status is the status of the containers at the runner.
	Status corev1.PodStatus
	// CreatedAt is the time of the start. DeletedAt is the time of the stop request, or zero.
	CreatedAt, DeletedAt time.Time
	// Gone reports that the containers of the group have ended. The service still shows the group for a while.
	Gone bool
}

// Fleet runs the groups of a service.
type Fleet struct {
	runner  nodeutil.Provider
	objects *Objects
	lag     time.Duration
	// Linger is the time for which the fleet shows a group whose containers have gone; 0 means the lag. It must not
	// change after the first request.
	Linger time.Duration

	mu     sync.Mutex
	groups map[string]*Seen // guarded by mu
	order  []string         // guarded by mu; IDs in the order of starts
}

// NewFleet returns a fleet that runs its groups at the runner. The runner gets the files of groups from objects.
// A list shows a new group, and drops an old one, only after the lag.
func NewFleet(runner nodeutil.Provider, objects *Objects, lag time.Duration) *Fleet {
	return &Fleet{runner: runner, objects: objects, lag: lag, groups: map[string]*Seen{}}
}

// Report handles a report of the runner. Pass it to the runner's NotifyPods. The last report of a deleted group shows how the group ended.
func (f *Fleet) Report(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.groups[pod.Name]; g != nil && pod.Namespace == namespace {
		g.Status = *pod.Status.DeepCopy()
	}
}

// Start starts a group. It fails if the fleet has the ID already, or if the runner refuses the group.
func (f *Fleet) Start(ctx context.Context, g Group) error {
	f.mu.Lock()
	if f.groups[g.ID] != nil {
		f.mu.Unlock()
		return errdefs.InvalidInputf("there is a group %s", g.ID)
	}
	f.groups[g.ID] = &Seen{ID: g.ID, CreatedAt: time.Now()}
	f.order = append(f.order, g.ID)
	f.mu.Unlock()
	for name, files := range g.Files {
		f.objects.set(g.ID, name, files)
	}
	if err := f.runner.CreatePod(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: g.ID, UID: types.UID(g.ID)}, Spec: g.Spec,
	}); err != nil {
		f.forgetGroup(g.ID)
		return fmt.Errorf("run group %s: %w", g.ID, err)
	}
	return nil
}

// Stop stops a group within a grace period in seconds. The group exists until its containers have ended, and lists show it for the lag
// after that.
func (f *Fleet) Stop(ctx context.Context, id string, grace int64) error {
	f.mu.Lock()
	g := f.groups[id]
	if g == nil || g.Gone {
		f.mu.Unlock()
		return errdefs.NotFoundf("there is no group %s", id)
	}
	if g.DeletedAt.IsZero() {
		g.DeletedAt = time.Now()
	}
	f.mu.Unlock()
	pod, err := f.runner.GetPod(ctx, namespace, id)
	if err == nil {
		pod = pod.DeepCopy()
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), &grace
		err = f.runner.DeletePod(ctx, pod)
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("stop group %s: %w", id, err)
	}
	return nil
}

// Get returns the current state of a group, without a lag. The error of a missing group is of the kind not-found.
func (f *Fleet) Get(ctx context.Context, id string) (Seen, error) {
	f.mu.Lock()
	_, ok := f.groups[id]
	f.mu.Unlock()
	if !ok {
		return Seen{}, errdefs.NotFoundf("there is no group %s", id)
	}
	return f.lookUpGroup(ctx, id)
}

// List returns the groups as a list of the service shows them: without the newest groups, and with groups that
// have just gone.
func (f *Fleet) List(ctx context.Context) (out []Seen, err error) {
	f.mu.Lock()
	ids := slices.Clone(f.order)
	f.mu.Unlock()
	for _, id := range ids {
		seen, err := f.lookUpGroup(ctx, id)
		switch {
		case errdefs.IsNotFound(err):
			continue
		case err != nil:
			return nil, err
		case time.Since(seen.CreatedAt) >= f.lag:
			out = append(out, seen)
		}
	}
	return out, nil
}

// lookUpGroup asks the runner for a group, and records that a group has gone.
func (f *Fleet) lookUpGroup(ctx context.Context, id string) (Seen, error) {
	pod, err := f.runner.GetPod(ctx, namespace, id)
	if err != nil && !errdefs.IsNotFound(err) {
		return Seen{}, fmt.Errorf("look at group %s: %w", id, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.groups[id]
	switch {
	case g == nil:
		return Seen{}, errdefs.NotFoundf("there is no group %s", id)
	case err == nil && pod != nil:
		g.Status = *pod.Status.DeepCopy()
	case !g.DeletedAt.IsZero() && !g.Gone:
		g.Gone, g.DeletedAt = true, time.Now()
	case g.Gone && time.Since(g.DeletedAt) >= max(f.lag, f.Linger):
		f.dropGroup(id)
		return Seen{}, errdefs.NotFoundf("there is no group %s", id)
	}
	return *g, nil
}

func (f *Fleet) forgetGroup(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropGroup(id)
}

// dropGroup removes a group. The caller holds f.mu.
func (f *Fleet) dropGroup(id string) {
	delete(f.groups, id)
	f.order = slices.DeleteFunc(f.order, func(other string) bool { return other == id })
	f.objects.dropSecrets(id)
}

// Runner returns the runner, namespace and name of the containers of a group, for logs and exec.
func (f *Fleet) Runner(id string) (runner nodeutil.Provider, ns, name string) {
	return f.runner, namespace, id
}
