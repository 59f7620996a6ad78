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

// namespace is where the groups of a fleet are at its runner.
const namespace = "groups"

// Group is what runs behind one object of a service: a container group, or a task.
type Group struct {
	// ID is unique in the fleet, and fit for the name of a pod.
	ID string
	// Spec is what runs. Volumes that name a Secret get it from Files.
	Spec corev1.PodSpec
	// Files are the Secrets of the group by name: paths and what they hold.
	Files map[string]map[string][]byte
}

// Seen is a group as the service shows it.
type Seen struct {
	ID string
	// Status is what the runner says of the containers.
	Status corev1.PodStatus
	// CreatedAt is when it was started; DeletedAt is zero while it was not asked to go.
	CreatedAt, DeletedAt time.Time
	// Gone is that nothing of it runs any more, and the service shows it for a while yet.
	Gone bool
}

// Fleet runs the groups of a service.
type Fleet struct {
	runner  nodeutil.Provider
	objects *Objects
	lag     time.Duration
	// Linger is how long a group of which nothing runs is shown yet; 0 is the lag. It is constant once the fleet is asked.
	Linger time.Duration

	mu     sync.Mutex
	groups map[string]*Seen // guarded by mu
	order  []string         // guarded by mu; IDs as they were started
}

// NewFleet returns a fleet of what the runner runs, which gets the files of groups from objects. A list has a new group, and is
// without an old one, only after the lag.
func NewFleet(runner nodeutil.Provider, objects *Objects, lag time.Duration) *Fleet {
	return &Fleet{runner: runner, objects: objects, lag: lag, groups: map[string]*Seen{}}
}

// Report takes a report of the runner: hand it to the runner's NotifyPods. The last one says how a group that was to go ended.
func (f *Fleet) Report(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.groups[pod.Name]; g != nil && pod.Namespace == namespace {
		g.Status = *pod.Status.DeepCopy()
	}
}

// Start begins to run a group. An ID that the fleet has is an error, as is what the runner refuses.
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
		f.forget(g.ID)
		return fmt.Errorf("run group %s: %w", g.ID, err)
	}
	return nil
}

// Stop asks a group to go, within the grace of seconds. It is there until its containers have ended, and shows for the lag after.
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

// Get returns a group as it is now, without a lag. The error is of the kind not-found for one that is not there.
func (f *Fleet) Get(ctx context.Context, id string) (Seen, error) {
	f.mu.Lock()
	_, ok := f.groups[id]
	f.mu.Unlock()
	if !ok {
		return Seen{}, errdefs.NotFoundf("there is no group %s", id)
	}
	return f.look(ctx, id)
}

// List returns the groups as a list of the service has them: those of the last moments are not there yet, or still.
func (f *Fleet) List(ctx context.Context) (out []Seen, err error) {
	f.mu.Lock()
	ids := slices.Clone(f.order)
	f.mu.Unlock()
	for _, id := range ids {
		seen, err := f.look(ctx, id)
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

// look asks the runner for a group, and takes down what has gone.
func (f *Fleet) look(ctx context.Context, id string) (Seen, error) {
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
		f.drop(id)
		return Seen{}, errdefs.NotFoundf("there is no group %s", id)
	}
	return *g, nil
}

func (f *Fleet) forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(id)
}

// drop removes a group. f.mu is held.
func (f *Fleet) drop(id string) {
	delete(f.groups, id)
	f.order = slices.DeleteFunc(f.order, func(other string) bool { return other == id })
	f.objects.drop(id)
}

// Runner is where the containers of groups are, and under which name: for logs and exec.
func (f *Fleet) Runner(id string) (runner nodeutil.Provider, ns, name string) {
	return f.runner, namespace, id
}
