// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// aheadBy is a clock that a test can advance.
type aheadBy struct{ by atomic.Int64 }

func (a *aheadBy) now() time.Time          { return time.Now().Add(time.Duration(a.by.Load())) }
func (a *aheadBy) forward(d time.Duration) { a.by.Add(int64(d)) }

// sweeping opens a node that sweeps without pauses until stop.
func sweeping(t *testing.T, c *cloud, clock *aheadBy) (p *driver, stop func()) {
	t.Helper()
	conf, err := c.config("home")
	if err != nil {
		t.Fatal(err)
	}
	if p, err = newDriver(t.Context(), cli.ProviderInput{NodeName: "node"}, conf, quick); err != nil {
		t.Fatal(err)
	}
	p.sweeper.every, p.sweeper.now = 50*time.Millisecond, clock.now
	p.kit.UsePodObjects(values{})
	p.kit.UsePodTokens(values{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- p.kit.RunInBackground(ctx) }()
	return p, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the work in the background: %v", err)
		}
	}
}

// kinds returns how many definitions and secrets are left, without the key of a cluster.
func kinds(c *cloud) (definitions, secrets int) {
	left := c.Left()
	return len(left["definitions"]), len(slices.DeleteFunc(left["secrets"], func(name string) bool { return strings.HasPrefix(name, "vk-key-") }))
}

// lifeOf creates a pod, waits until it runs, and deletes it.
func lifeOf(t *testing.T, p *driver, pod *corev1.Pod) {
	t.Helper()
	if err := p.kit.Cache().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.kit.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	until(t, p, pod.Name, "running", isRunning)
	end(t, p, pod)
}

func end(t *testing.T, p *driver, pod *corev1.Pod) {
	t.Helper()
	pod.DeletionTimestamp = new(metav1.Now())
	if err := p.kit.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	tick := everyMoment(t)
	for {
		if got, err := p.kit.GetPod(t.Context(), pod.Namespace, pod.Name); errdefs.IsNotFound(err) || err == nil && isOver(got) {
			return
		}
		tick("the pod is over")
	}
}

func variables(name string) *corev1.Pod {
	pod := podOf(name, program.Program{Stay: program.Forever})
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}}}
	return pod
}

func named(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env,
		corev1.EnvVar{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}})
	return pod
}

// TestWhatIsOfOnePodGoesWithIt checks that a definition or a secret of a single pod is removed with the pod:
// because of a token, of the pod's name in a variable, or of both.
func TestWhatIsOfOnePodGoesWithIt(t *testing.T) {
	c := cloudOf(t)
	p, stop := sweeping(t, c, &aheadBy{})
	defer stop()
	withToken := podOf("token", program.Program{Stay: program.Forever})
	withToken.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: token}}
	both := named(variables("both"))
	both.Spec.Containers[0].Env = append(both.Spec.Containers[0].Env, corev1.EnvVar{Name: "URL", Value: "$(NAME):$(PASSWORD)"})
	for _, pod := range []*corev1.Pod{withToken, named(podOf("name", program.Program{Stay: program.Forever})), both} {
		lifeOf(t, p, pod)
	}
	tick := everyMoment(t)
	for {
		definitions, secrets := kinds(c)
		if definitions+secrets == 0 {
			break
		}
		tick("what was of the pods alone is removed")
	}
}

// TestSharedThingsGoADayAfterTheirLastUser checks that a shared definition and a shared secret stay while a task
// uses them, and for a day after.
func TestSharedThingsGoADayAfterTheirLastUser(t *testing.T) {
	c := cloudOf(t)
	var clock aheadBy
	p, stop := sweeping(t, c, &clock)
	defer stop()
	lifeOf(t, p, variables("first"))
	long := variables("second")
	if err := p.kit.CreatePod(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	until(t, p, "second", "running", isRunning)
	clock.forward(3 * sharedFor)
	swept(t, c)
	if definitions, secrets := kinds(c); definitions != 1 || secrets != 1 {
		t.Fatalf("while a task runs there are %d definitions and %d secrets, want one each", definitions, secrets)
	}
	end(t, p, long)
	clock.forward(sharedFor - time.Hour)
	swept(t, c)
	if definitions, secrets := kinds(c); definitions != 1 || secrets != 1 {
		t.Fatalf("an hour before the day is over there are %d definitions and %d secrets, want one each", definitions, secrets)
	}
	clock.forward(2 * time.Hour)
	tick := everyMoment(t)
	for definitions, secrets := kinds(c); definitions+secrets > 0; definitions, secrets = kinds(c) {
		tick("a day after the last user the definition and the secret are removed")
	}
	again := variables("third") // and created again
	lifeOf(t, p, again)
}

// swept waits for two sweeps of the node: the first one may have begun before the clock was advanced. Removals
// come after each sweep.
func swept(t *testing.T, c *cloud) {
	t.Helper()
	tick := everyMoment(t)
	for begun := len(c.Requests("ListSecrets")); len(c.Requests("ListSecrets")) < begun+3; {
		tick("the node sweeps")
	}
}

// TestLeftoversAreFoundAfterARestart checks that a node finds its leftovers by their names: leftovers of a pod
// that is gone, half-removed ones, and shared ones.
func TestLeftoversAreFoundAfterARestart(t *testing.T) {
	c := cloudOf(t)
	var clock aheadBy
	p, stop := sweeping(t, c, &clock)
	if err := p.kit.Cache().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone := variables("gone")
	gone.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: token}}
	if _, err := p.prepare(t.Context(), inputsOf(t, gone, &tokens{"first"})); err != nil {
		t.Fatal(err)
	}
	if _, err := p.prepare(t.Context(), inputsOf(t, variables("shared"), &tokens{"first"})); err != nil {
		t.Fatal(err)
	}
	stop()
	before := maps.Clone(c.Left())
	if len(before["definitions"]) != 2 || len(before["secrets"]) != 3 {
		t.Fatalf("there are %v, so this proves nothing", before)
	}
	_, stop = sweeping(t, c, &clock)
	defer stop()
	clock.forward(ownFor + time.Minute)
	tick := everyMoment(t)
	for definitions, secrets := kinds(c); definitions != 1 || secrets != 1; definitions, secrets = kinds(c) {
		tick("what was of the pod that is gone is removed")
	}
	clock.forward(3 * sharedFor)
	for definitions, secrets := kinds(c); definitions+secrets > 0; definitions, secrets = kinds(c) {
		tick("what was shared is removed")
	}
}

// TestOtherNodesKeepTheirs checks that two nodes of a cluster with the same pods have their own definitions and
// secrets, and do not remove each other's.
func TestOtherNodesKeepTheirs(t *testing.T) {
	c := cloudOf(t)
	var clock aheadBy
	_, stop := sweeping(t, c, &clock)
	defer stop()
	conf, err := c.config("home")
	if err != nil {
		t.Fatal(err)
	}
	other, err := newDriver(t.Context(), cli.ProviderInput{NodeName: "other"}, conf, quick)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.prepare(t.Context(), inputsOf(t, variables("other"), &tokens{"first"})); err != nil {
		t.Fatal(err)
	}
	clock.forward(3 * sharedFor)
	swept(t, c)
	if definitions, secrets := kinds(c); definitions != 1 || secrets != 1 {
		t.Errorf("of the other node there are %d definitions and %d secrets, want one each", definitions, secrets)
	}
}

// TestThingsKeepNoEmptyRecords: a thing that nothing uses and that has no ARN has no record, so pods leave nothing in memory while sweeps fail.
func TestThingsKeepNoEmptyRecords(t *testing.T) {
	all := newThings()
	all.use(time.Now(), "vk-secret")
	all.set("vk-secret", func(one *thing) { one.arn = "arn:secret" })
	all.set("vk-secret", func(one *thing) { one.used = time.Time{} })
	all.lose("vk-secret")
	all.lose("vk-unknown")
	if len(all.all) != 0 {
		t.Errorf("got %v", all.all)
	}
}
