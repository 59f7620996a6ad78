// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// churn creates, changes and removes pods as long as it runs. It starts a pod at every tick up to a limit, regardless of earlier pods, so
// that the load is constant.
type churn struct {
	*world
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// churnLimit is the greatest number of pods that exist at once.
const churnLimit = 150

// churnAt starts a churn with the given number of new pods per second.
func (w *world) churnAt(perSecond int) *churn {
	ctx, cancel := context.WithCancel(w.Context())
	c := &churn{world: w, cancel: cancel}
	slots := make(chan struct{}, churnLimit)
	c.wg.Go(func() {
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			c.wg.Go(func() {
				defer func() { <-slots }()
				c.live(n)
			})
		}
	})
	w.Cleanup(func() {
		cancel()
		c.wg.Wait()
	})
	return c
}

// stop starts no further pods and waits until the present pods have ended.
func (c *churn) stop() {
	c.Helper()
	c.cancel()
	c.wg.Wait()
}

// actor runs one pod after the other with the same name. An error fails the test and ends the actor.
type actor struct {
	*world
	random *rand.Rand
	name   string
	on     string // the node of its pods; "": the node of the world
	pod    *corev1.Pod
	wrote  int // the last number written as a foreign writer
	failed bool
}

func (c *churn) live(n int) {
	a := &actor{world: c.world, random: rand.New(rand.NewPCG(uint64(n), 1)), name: fmt.Sprintf("churn-%d", n), on: c.nodeOf(n)}
	defer c.records.over(a.name)
	switch {
	case n%20 == 19 && !c.gently:
		a.forced()
	case n%4 == 0:
		a.plain()
	case n%4 == 1:
		a.job()
	case n%4 == 2: // the same name again at once, as a StatefulSet does
		a.plain()
		a.plain()
	default:
		a.early()
	}
}

// plain runs a pod, changes it, and deletes it.
func (a *actor) plain() {
	a.create(corev1.RestartPolicyAlways)
	a.awaitPhase(corev1.PodRunning)
	for range a.random.IntN(4) {
		a.pause(250)
		a.change()
	}
	a.pause(250)
	a.remove(nil)
	a.awaitGone()
}

// job runs a pod that ends by itself.
func (a *actor) job() {
	a.create(corev1.RestartPolicyNever)
	a.awaitPhase(corev1.PodRunning)
	a.pause(250)
	code := int32(a.random.IntN(2))
	if !a.failed && !a.backend.Finish(a.namespace, a.name, a.pod.UID, code) {
		a.fail("end its containers: it does not run at the backend")
	}
	a.await("it has ended", func(p *podRecord) bool { return lifecycle.Terminal(&p.api.Status) })
	a.remove(nil)
	a.awaitGone()
}

// forced deletes a pod without grace, and creates another pod of the same name within milliseconds.
func (a *actor) forced() {
	a.create(corev1.RestartPolicyAlways)
	a.awaitPhase(corev1.PodRunning)
	a.remove(new(int64))
	a.plain()
}

// early deletes a pod while it starts.
func (a *actor) early() {
	a.create(corev1.RestartPolicyAlways)
	a.pause(100)
	a.remove(nil)
	a.awaitGone()
}

func (a *actor) create(policy corev1.RestartPolicy) {
	noToken, grace := false, int64(5)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: a.namespace, Labels: map[string]string{foreign: "0"}},
		Spec: corev1.PodSpec{
			NodeName: cmp.Or(a.on, a.node), RestartPolicy: policy, AutomountServiceAccountToken: &noToken, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "main", Image: "example.test/image:1"}},
		},
	}
	a.wrote = 0
	a.pod = nil
	a.try("create", func(ctx context.Context) (err error) {
		a.pod, err = a.pods().Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

// change makes a random change to a running pod.
func (a *actor) change() {
	if a.failed {
		return
	}
	switch a.random.IntN(5) {
	case 0:
		a.backend.Change(a.namespace, a.name, a.pod.UID, func(s *corev1.PodStatus) { s.ContainerStatuses[0].RestartCount++ })
	case 1:
		a.wrote++
		a.patch("write a label", `{"metadata":{"uid":%q,"labels":{%q:"%d"}}}`, a.pod.UID, foreign, a.wrote)
	case 2:
		a.wrote++
		a.patch("write an annotation", `{"metadata":{"uid":%q,"annotations":{%q:"%d"}}}`, a.pod.UID, foreign, a.wrote)
	case 3:
		a.wrote++
		a.patchStatus("write a condition", `{"metadata":{"uid":%q},"status":{"conditions":[{"type":%q,"status":"True","message":"%d"}]}}`, a.pod.UID, foreign, a.wrote)
	case 4:
		a.wrote++
		a.patch("change the image", `{"metadata":{"uid":%q},"spec":{"containers":[{"name":"main","image":"example.test/image:%d"}]}}`, a.pod.UID, a.wrote+1)
	}
}

func (a *actor) patch(what, format string, args ...any) { a.patchSub(what, nil, format, args...) }

func (a *actor) patchStatus(what, format string, args ...any) {
	a.patchSub(what, []string{"status"}, format, args...)
}

func (a *actor) patchSub(what string, sub []string, format string, args ...any) {
	a.try(what, func(ctx context.Context) error {
		_, err := a.pods().Patch(ctx, a.name, types.StrategicMergePatchType, []byte(fmt.Sprintf(format, args...)), metav1.PatchOptions{}, sub...)
		return err
	})
}

func (a *actor) remove(grace *int64) {
	if a.failed {
		return
	}
	a.records.asked(a.name, a.pod.UID, grace != nil)
	a.try("delete", func(ctx context.Context) error {
		err := a.pods().Delete(ctx, a.name, metav1.DeleteOptions{GracePeriodSeconds: grace, Preconditions: metav1.NewUIDPreconditions(string(a.pod.UID))})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

func (a *actor) awaitPhase(phase corev1.PodPhase) {
	a.await(fmt.Sprintf("it is %s", phase), func(p *podRecord) bool { return p.api.Status.Phase == phase })
}

func (a *actor) awaitGone() { a.await("it is gone", func(p *podRecord) bool { return p.gone }) }

// await waits until done returns true for the pod in the API server.
func (a *actor) await(what string, done func(*podRecord) bool) {
	if a.failed {
		return
	}
	ctx, cancel := context.WithTimeout(a.Context(), max(patience, a.longest))
	defer cancel()
	for {
		changed, is, state := a.records.look(a.name, a.pod.UID, done)
		if is {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			a.fail("wait until %s: %v: %s", what, context.Cause(ctx), state)
			return
		}
	}
}

// try sends a request of the test, and repeats it while the API server is too busy.
func (a *actor) try(what string, request func(context.Context) error) {
	if a.failed {
		return
	}
	ctx, cancel := context.WithTimeout(a.Context(), patience)
	defer cancel()
	if err := request(ctx); err != nil {
		a.fail("%s: %v", what, err)
	}
}

func (a *actor) fail(format string, args ...any) {
	a.failed = true
	if a.Context().Err() == nil {
		a.Errorf("pod %s: %s", a.name, fmt.Sprintf(format, args...))
	}
}

// pause waits for a random time, up to the given number of milliseconds.
func (a *actor) pause(milliseconds int) {
	select {
	case <-time.After(time.Duration(a.random.IntN(milliseconds)) * time.Millisecond):
	case <-a.Context().Done():
	}
}
