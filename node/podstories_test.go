// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
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

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/membackend"
)

func TestLifeOfAPodTakesThreeWrites(t *testing.T) {
	inWorld(t, membackend.New(), func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
		w.api.Delete("d", "p", -1)
		w.pass(time.Minute)
		w.wantPhase("p", "")
		w.wantWrites("d/p", "patch", "patch", "delete")
		wantCalls(t, w.backend, "create d/p", "delete d/p")
		if n := w.ctl.states.size(); n != 0 {
			t.Errorf("%d states are left", n)
		}
		if n := w.ctl.SyncPodsFromKubernetesQueueLen() + w.ctl.DeletePodsFromKubernetesQueueLen() + w.ctl.SyncPodStatusFromProviderQueueLen(); n != 0 {
			t.Errorf("%d keys are left in the queues", n)
		}
	})
}

func TestProviderWithoutNotifierIsPolled(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "busy" })
		w.pass(6 * time.Second)
		if got := w.api.Pod("d", "p").Status.Message; got != "busy" {
			t.Errorf("message is %q, want busy", got)
		}
		w.api.Delete("d", "p", -1)
		w.pass(5 * time.Second)
		w.wantPhase("p", "")
		for _, write := range w.api.Writes("d/p") {
			if strings.Contains(write.Body, `"exitCode":0`) {
				t.Errorf("an exit code 0 is invented: %s", write.Body)
			}
		}
	}, silent)
}

func TestProviderWhoseListHasNoStatusIsPolledOneByOne(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		for i := range 30 {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.pass(2 * time.Second)
		for i := range 30 {
			b.Change(fmt.Sprint("d/p", i), func(p *corev1.Pod) { p.Status.Message = "busy" })
		}
		w.pass(6 * time.Second)
		for i := range 30 {
			if got := w.api.Pod("d", fmt.Sprint("p", i)).Status.Message; got != "busy" {
				t.Errorf("message of p%d is %q, want busy", i, got)
			}
		}
	}, func(cfg *PodControllerConfig) { cfg.Provider = bareLists{b} })
}

// bareLists is a provider whose GetPods says which pods there are and no more.
type bareLists struct{ PodLifecycleHandler }

func (b bareLists) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	pods, err := b.PodLifecycleHandler.GetPods(ctx)
	for _, p := range pods {
		p.Status = corev1.PodStatus{}
	}
	return pods, err
}

func TestRestartChangesNothing(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		for i := range 20 {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.pass(time.Second)
		calls := len(b.Calls())
		writes := len(w.api.Writes(""))
		w.halt()
		w.start()
		w.pass(10 * time.Minute)
		if len(b.Calls()) != calls || len(w.api.Writes("")) != writes {
			t.Errorf("after a restart: calls %q, writes %v", b.Calls()[calls:], w.api.Writes("")[writes:])
		}
	})
}

func TestWhatHappenedWhileTheDaemonWasDown(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		for _, name := range []string{"deleted", "forced", "ended", "replaced", "changed"} {
			w.api.Create(bound(name, ""))
		}
		w.pass(time.Second)
		w.halt()
		w.api.Delete("d", "deleted", 30)
		w.api.Delete("d", "forced", 0)
		b.Mute()
		b.Change("d/ended", func(p *corev1.Pod) { *p = *membackend.Ended(p, 3) })
		w.api.Delete("d", "replaced", 0)
		w.api.Create(bound("replaced", "new"))
		w.api.Change("d", "changed", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "j" })
		w.start()
		w.pass(time.Minute)
		w.wantPhase("deleted", "")
		w.wantPhase("ended", corev1.PodFailed)
		w.wantPhase("replaced", corev1.PodRunning)
		if b.Has("d/deleted") != nil || b.Has("d/forced") != nil {
			t.Error("a deleted pod is left at the backend")
		}
		if got := b.Has("d/replaced"); got == nil || got.UID != "new" {
			t.Errorf("the backend's pod is %v, want the new one", got)
		}
		if got := b.Has("d/changed").Spec.Containers[0].Image; got != "j" {
			t.Errorf("image at the backend is %s, want j", got)
		}
	})
}

func TestReadinessGateOfAnotherWriterIsKept(t *testing.T) {
	inWorld(t, membackend.New(), func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
		w.api.Create(p)
		w.pass(time.Second)
		w.wantReady("p", corev1.ConditionFalse)
		w.api.Change("d", "p", func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "gate", Status: corev1.ConditionTrue})
		})
		w.pass(time.Second)
		w.wantReady("p", corev1.ConditionTrue)
	})
}

func (w *world) wantReady(name string, want corev1.ConditionStatus) {
	w.Helper()
	for _, c := range w.api.Pod("d", name).Status.Conditions {
		if c.Type == corev1.PodReady {
			if c.Status != want {
				w.Errorf("Ready of %s is %+v, want %s", name, c, want)
			}
			return
		}
	}
	w.Errorf("%s has no condition Ready", name)
}

func TestPodWaitsForItsConfigMap(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}, Key: "k"}}}}
		w.api.Create(p)
		w.pass(time.Second)
		s := w.api.Pod("d", "p").Status
		if s.Phase != corev1.PodPending || len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].State.Waiting == nil || s.ContainerStatuses[0].State.Waiting.Reason != "CreateContainerConfigError" {
			t.Errorf("status is %+v, want a container that waits with CreateContainerConfigError", s)
		}
		if e := strings.Join(w.events(), "\n"); !strings.Contains(e, "MandatoryConfigMapNotFound") {
			t.Errorf("events are %q, want MandatoryConfigMapNotFound", e)
		}
		wantCalls(t, b)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "cm"}, Data: map[string]string{"k": "v"}}
		if _, err := w.objects.CoreV1().ConfigMaps("d").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodRunning)
		if env := b.Has("d/p").Spec.Containers[0].Env; len(env) == 0 || env[0].Value != "v" {
			t.Errorf("environment is %v, want X=v", env)
		}
	})
}

func TestSecretsStayOutOfRequests(t *testing.T) {
	const canary = "c4n4ry"
	b := membackend.New()
	b.Fault = membackend.FailFirst("create", 2)
	inWorld(t, b, func(w *world) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "s"}, Data: map[string][]byte{"k": []byte(canary)}}
		if _, err := w.objects.CoreV1().Secrets("d").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.start()
		p := bound("p", "a")
		p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
		w.api.Create(p)
		w.pass(time.Minute)
		if env := fmt.Sprint(b.Has("d/p").Spec.Containers[0].Env); !strings.Contains(env, canary) {
			t.Fatalf("the provider was not given the secret: %s", env)
		}
		w.api.Delete("d", "p", 1)
		w.pass(time.Minute)
		for _, write := range w.api.Writes("") {
			if strings.Contains(write.Body, canary) {
				t.Errorf("the secret is in a request: %s", write.Body)
			}
		}
		if e := fmt.Sprint(w.events()); strings.Contains(e, canary) {
			t.Errorf("the secret is in an event: %s", e)
		}
	})
}

func TestActiveDeadlineFailsThePod(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		seconds := int64(90)
		p.Spec.ActiveDeadlineSeconds = &seconds
		w.api.Create(p)
		w.pass(80 * time.Second)
		w.wantPhase("p", corev1.PodRunning)
		w.pass(15 * time.Second)
		w.wantPhase("p", corev1.PodFailed)
		if got := w.api.Pod("d", "p").Status.Reason; got != "DeadlineExceeded" {
			t.Errorf("reason is %q, want DeadlineExceeded", got)
		}
		wantCalls(t, b, "create d/p", "delete d/p")
	})
}

func TestHungCallsDoNotStopOthers(t *testing.T) {
	b := membackend.New()
	b.Fault = func(ctx context.Context, method, key string) error {
		if method == "create" && strings.HasPrefix(key, "d/hung") {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		w.start()
		for i := range 10 {
			w.api.Create(bound(fmt.Sprint("hung", i), ""))
		}
		w.pass(time.Second)
		w.api.Create(bound("eleventh", ""))
		w.pass(25 * time.Second) // four workers, which hung calls leave after ten seconds each
		w.wantPhase("eleventh", corev1.PodRunning)
		w.pass(11 * time.Minute)
		if got := w.api.Pod("d", "hung0").Status.Message; !strings.Contains(got, context.DeadlineExceeded.Error()) {
			t.Errorf("message of a hung pod is %q, want the deadline in it", got)
		}
	})
}

func TestPanicCostsOnePodOneBackoff(t *testing.T) {
	b := membackend.New()
	var once sync.Once
	b.Fault = func(_ context.Context, method, key string) error {
		if method == "create" && key == "d/bad" {
			once.Do(func() { panic("boom") })
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("bad", ""))
		w.api.Create(bound("good", ""))
		w.pass(100 * time.Millisecond)
		w.wantPhase("good", corev1.PodRunning)
		w.wantPhase("bad", corev1.PodPending)
		w.pass(time.Minute)
		w.wantPhase("bad", corev1.PodRunning)
	})
}

func TestStatusBackAndForthEndsWithTheLast(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(10 * time.Second)
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "B" })
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "" })
		w.pass(10 * time.Second)
		if got := w.api.Pod("d", "p").Status.Message; got != "" {
			t.Errorf("message is %q, want none", got)
		}
		before := len(w.api.Writes("d/p"))
		for i := range 2000 {
			b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = fmt.Sprint(i) })
			w.pass(5 * time.Millisecond)
		}
		w.pass(5 * time.Second)
		if got := w.api.Pod("d", "p").Status.Message; got != "1999" {
			t.Errorf("message is %q, want the last", got)
		}
		if n := len(w.api.Writes("d/p")) - before; n > 20 {
			t.Errorf("%d writes in 10 s of flapping, want about one a second", n)
		}
	})
}

func TestStatusWriteIsRetried(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		var refuse atomic.Bool
		refuse.Store(true)
		w.api.Fault = func(verb, _, _ string) error {
			if verb == "patch" && refuse.Load() {
				return apierrors.NewTooManyRequests("slow down", 1)
			}
			return nil
		}
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Hour)
		w.wantPhase("p", corev1.PodPending)
		refuse.Store(false)
		w.pass(time.Minute + 10*time.Second)
		w.wantPhase("p", corev1.PodRunning)
	})
}

func TestForbiddenLabelDoesNotHoldUpTheStatus(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Fault = func(verb, _, _ string) error {
			if writes := w.api.Writes("d/p"); verb == "patch" && strings.Contains(writes[len(writes)-1].Body, `"labels"`) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("labels"))
			}
			return nil
		}
		b.Change("d/p", func(p *corev1.Pod) {
			p.Labels = map[string]string{"backend": "1"}
			p.Status.Message = "hello"
		})
		w.pass(time.Second)
		if got := w.api.Pod("d", "p"); got.Status.Message != "hello" || len(got.Labels) != 0 {
			t.Errorf("message %q, labels %v; want the message without the label", got.Status.Message, got.Labels)
		}
	})
}

func TestLostPod(t *testing.T) {
	for _, story := range []struct {
		policy corev1.RestartPolicy
		want   corev1.PodPhase
		calls  int
	}{{corev1.RestartPolicyAlways, corev1.PodRunning, 2}, {corev1.RestartPolicyNever, corev1.PodFailed, 1}} {
		t.Run(string(story.policy), func(t *testing.T) {
			b := membackend.New()
			inWorld(t, b, func(w *world) {
				w.start()
				p := bound("p", "a")
				p.Spec.RestartPolicy = story.policy
				w.api.Create(p)
				w.pass(time.Minute)
				b.Lose("d/p")
				w.pass(2 * time.Minute)
				w.wantPhase("p", story.want)
				if n := b.Count("create d/p"); n != story.calls {
					t.Errorf("%d creates, want %d", n, story.calls)
				}
				if e := strings.Join(w.events(), "\n"); strings.Count(e, "ProviderPodLost") != 1 {
					t.Errorf("events are %s, want one ProviderPodLost", e)
				}
			})
		})
	}
}

// TestGetPodErrorWithoutAKind: many providers return a plain error for a pod
// that they do not have.
func TestGetPodErrorWithoutAKind(t *testing.T) {
	b := membackend.New()
	b.Fault = func(_ context.Context, method, key string) error {
		if method == "get" && b.Has(key) == nil {
			return errors.New("unknown pod")
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
		w.api.Delete("d", "p", 5)
		w.pass(10 * time.Second)
		w.wantPhase("p", "")
	})
}

func TestUpdateReachesTheBackendAndIsObserved(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		for range 50 {
			w.api.Change("d", "p", func(p *corev1.Pod) { p.Spec.Containers[0].Image += "x" })
		}
		w.pass(time.Minute)
		p := w.api.Pod("d", "p")
		if p.Status.ObservedGeneration != p.Generation || b.Has("d/p").Spec.Containers[0].Image != p.Spec.Containers[0].Image {
			t.Errorf("generation %d, observed %d", p.Generation, p.Status.ObservedGeneration)
		}
	})
}

func TestFinalizerHoldsTheObjectWithoutAStorm(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Finalizers = []string{"some/body"}
		w.api.Create(p)
		w.pass(time.Second)
		w.api.Delete("d", "p", 5)
		w.pass(time.Minute)
		if b.Has("d/p") != nil {
			t.Error("the backend still has the pod")
		}
		w.wantPhase("p", corev1.PodSucceeded)
		before := len(w.api.Writes(""))
		w.pass(10 * time.Minute)
		if n := len(w.api.Writes("")) - before; n > 0 {
			t.Errorf("%d writes while the finalizer holds the object", n)
		}
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Finalizers = nil })
		w.pass(time.Second)
		w.wantPhase("p", "")
	})
}

func TestFilterIsAskedAtAddUpdateAndDelete(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	inWorld(t, membackend.New(), func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Labels = map[string]string{"step": "update"} })
		w.pass(time.Second)
		w.api.Create(bound("foreign", "b"))
		w.pass(time.Second)
		wantCalls(t, w.backend, "create d/p", "update d/p")
		w.api.Delete("d", "p", 5)
		w.pass(10 * time.Second)
		if !seen["add"] || !seen["update"] || !seen["delete"] {
			t.Errorf("asked at %v, want add, update and delete", seen)
		}
	}, func(cfg *PodControllerConfig) {
		cfg.PodEventFilterFunc = func(_ context.Context, p *corev1.Pod) bool {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case p.DeletionTimestamp != nil:
				seen["delete"] = true
			case p.Labels["step"] == "update":
				seen["update"] = true
			default:
				seen["add"] = true
			}
			return p.Name != "foreign"
		}
	})
}

func TestShouldRetryFuncDecides(t *testing.T) {
	b := membackend.New()
	b.Fault = membackend.FailFirst("create", 100)
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(30 * time.Second)
		if n := b.Count("create d/p"); n != 3 {
			t.Errorf("%d tries, want 3", n)
		}
		w.pass(31 * time.Second) // the resync looks anew
		if n := b.Count("create d/p"); n <= 3 {
			t.Errorf("%d tries after a resync, want more", n)
		}
	}, func(cfg *PodControllerConfig) {
		cfg.SyncPodsFromKubernetesShouldRetryFunc = func(_ context.Context, key string, tries int, _ time.Time, err error) (*time.Duration, error) {
			if key != "d/p" || !errors.Is(err, membackend.ErrUnwell) {
				t.Errorf("asked about %s, %v", key, err)
			}
			if tries == 3 {
				return nil, errors.New("enough")
			}
			d := time.Second
			return &d, nil
		}
	})
}

func TestDefaultRetryFunc(t *testing.T) {
	if d, err := DefaultRetryFunc(t.Context(), "k", 19, time.Now(), membackend.ErrUnwell); d != nil || err != nil {
		t.Errorf("19th try: %v, %v", d, err)
	}
	if _, err := DefaultRetryFunc(t.Context(), "k", 20, time.Now(), membackend.ErrUnwell); err == nil || !errors.Is(err, membackend.ErrUnwell) || !strings.Contains(err.Error(), "maximum retries (20) reached") {
		t.Errorf("20th try: %v", err)
	}
	defer func(n int) { MaxRetries = n }(MaxRetries)
	MaxRetries = 2
	if _, err := DefaultRetryFunc(t.Context(), "k", 2, time.Now(), membackend.ErrUnwell); err == nil {
		t.Error("an assigned MaxRetries has no effect")
	}
}

func TestNewPodControllerNamesWhatIsMissing(t *testing.T) {
	var typedNil *membackend.Backend
	inWorld(t, membackend.New(), func(w *world) {
		w.configs = append(w.configs, func(cfg *PodControllerConfig) {
			for name, lack := range map[string]func(*PodControllerConfig){
				"missing core client":         func(c *PodControllerConfig) { c.PodClient = nil },
				"missing event recorder":      func(c *PodControllerConfig) { c.EventRecorder = nil },
				"missing pod informer":        func(c *PodControllerConfig) { c.PodInformer = nil },
				"missing config map informer": func(c *PodControllerConfig) { c.ConfigMapInformer = nil },
				"missing secret informer":     func(c *PodControllerConfig) { c.SecretInformer = nil },
				"missing service informer":    func(c *PodControllerConfig) { c.ServiceInformer = nil },
				"missing provider":            func(c *PodControllerConfig) { c.Provider = typedNil },
			} {
				broken := *cfg
				lack(&broken)
				if _, err := NewPodController(broken); err == nil || err.Error() != name || !errdefs.IsInvalidInput(err) {
					t.Errorf("got %v, want %s", err, name)
				}
			}
		})
		w.start()
	})
}
