// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestPodsOfOtherNodesAreLeftAlone: some backends list the pods of other nodes too.
func TestPodsOfOtherNodesAreLeftAlone(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		other := bound("theirs", "t")
		other.Spec.NodeName = "m"
		b.Run(other)
		w.start()
		w.pass(time.Hour)
		wantCalls(t, b)
	}, func(cfg *PodControllerConfig) { cfg.NodeName = "n" })
}

// TestRefusedFinalStatusDoesNotKeepThePod: a status that the API server never accepts must not hold a stopped pod.
func TestRefusedFinalStatusDoesNotKeepThePod(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.but = []string{"S5"} // the API server refuses the last status
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Fault = func(verb, _, name string) error {
			if verb == "patch" {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, name, nil)
			}
			return nil
		}
		w.api.Delete("d", "p", 5)
		w.pass(time.Minute)
		w.wantPhase("p", "")
		if e := strings.Join(w.events(), "\n"); !strings.Contains(e, eventStatusFailed) {
			t.Errorf("events are %q, want %s", e, eventStatusFailed)
		}
	})
}

// TestRequestThatHangsIsGivenUp: a connection may break silently.
func TestRequestThatHangsIsGivenUp(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		dead := &deadAtFirst{PodsGetter: w.api}
		dead.left.Store(10)
		w.configs = append(w.configs, func(cfg *PodControllerConfig) { cfg.PodClient = dead })
		w.start()
		for i := range 10 {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.pass(5 * time.Minute)
		for i := range 10 {
			w.wantPhase(fmt.Sprint("p", i), corev1.PodRunning)
		}
	})
}

// deadAtFirst does not answer the first patches.
type deadAtFirst struct {
	corev1client.PodsGetter
	left atomic.Int32
}

func (d *deadAtFirst) Pods(namespace string) corev1client.PodInterface {
	return deadPods{d.PodsGetter.Pods(namespace), &d.left}
}

type deadPods struct {
	corev1client.PodInterface
	left *atomic.Int32
}

func (d deadPods) Patch(ctx context.Context, name string, kind types.PatchType, body []byte, opts metav1.PatchOptions, sub ...string) (*corev1.Pod, error) {
	if d.left.Add(-1) >= 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return d.PodInterface.Patch(ctx, name, kind, body, opts, sub...)
}

// TestKickReachesAPodThatIsBeingTried: the running try may have begun before the backend recovered.
func TestKickReachesAPodThatIsBeingTried(t *testing.T) {
	b := memory.New()
	var mu sync.Mutex
	well := false
	b.Fault = func(_ context.Context, method, _ string) error {
		mu.Lock()
		ok := well
		mu.Unlock()
		if method == "create" && !ok {
			time.Sleep(30 * time.Second)
			return memory.ErrUnwell
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		for b.Count("create d/p") < 10 {
			w.pass(time.Second)
		}
		mu.Lock()
		well = true
		mu.Unlock()
		w.ctl.Kick()
		w.pass(31 * time.Second)
		w.wantPhase("p", corev1.PodRunning)
	})
}

// TestStateOfARemovedPodStaysForgotten: the watch may show the removal before the response arrives.
func TestStateOfARemovedPodStaysForgotten(t *testing.T) {
	inWorld(t, memory.New(), func(w *world) {
		w.configs = append(w.configs, func(cfg *PodControllerConfig) { cfg.PodClient = lateAnswers{w.api} })
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Delete("d", "p", -1)
		w.pass(time.Minute)
		w.wantPhase("p", "")
		if n := w.ctl.states.size(); n != 0 {
			t.Errorf("%d states are left", n)
		}
	})
}

// lateAnswers returns from a delete a second after its effect.
type lateAnswers struct{ corev1client.PodsGetter }

func (l lateAnswers) Pods(namespace string) corev1client.PodInterface {
	return latePods{l.PodsGetter.Pods(namespace)}
}

type latePods struct{ corev1client.PodInterface }

func (l latePods) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	err := l.PodInterface.Delete(ctx, name, opts)
	<-time.After(time.Second)
	return err
}

// TestReportDuringCreateIsOneWrite: a backend may report before CreatePod returns; the generation is written together with this report.
func TestReportDuringCreateIsOneWrite(t *testing.T) {
	inWorld(t, memory.New(), func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Minute)
		w.wantWrites("d/p", "patch")
		if got := w.api.Pod("d", "p").Status.ObservedGeneration; got != 1 {
			t.Errorf("observed generation is %d, want 1", got)
		}
	}, func(cfg *PodControllerConfig) {
		cfg.Provider = slowReturn{cfg.Provider.(memory.Notifying)}
	})
}

// slowReturn runs and reports a pod five seconds before CreatePod returns.
type slowReturn struct{ memory.Notifying }

func (s slowReturn) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	err := s.Notifying.CreatePod(ctx, pod)
	<-time.After(5 * time.Second)
	return err
}
