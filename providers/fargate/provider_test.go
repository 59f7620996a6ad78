// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/ecs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// values are the objects of the API. Every variable from a Secret has the canary.
type values struct{ node.PodObjects }

// Secret implements node.PodObjects.
func (values) Secret(context.Context, *corev1.Pod, string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"key": []byte(canary + "-file")}}, nil
}

// Token implements node.PodTokens.
func (values) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	return node.PodToken{Token: canary + "-token"}, nil
}

// PullCredentials implements node.PullCredentials.
func (values) PullCredentials(context.Context, *corev1.Pod) ([]node.RegistryCredential, error) {
	return []node.RegistryCredential{{Registry: "private.example", Username: "user", Password: canary + "-login"}}, nil
}

func (values) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == name {
			c := c.DeepCopy()
			for i := range c.Env {
				if c.Env[i].ValueFrom != nil {
					c.Env[i].Value, c.Env[i].ValueFrom = canary, nil
				}
			}
			return c, nil
		}
	}
	return nil, errdefs.NotFound("no such container")
}

// open runs a provider on a cloud until the test ends.
func open(t *testing.T, c *cloud, change ...func(*Config)) *driver {
	t.Helper()
	return openAt(t, c, quick, change...)
}

// openAt is like open, with other intervals.
func openAt(t *testing.T, c *cloud, at service.Config, change ...func(*Config)) *driver {
	t.Helper()
	conf, err := c.config("home")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(&conf)
	}
	p, err := newDriver(t.Context(), cli.ProviderInput{NodeName: "node"}, conf, at)
	if err != nil {
		t.Fatal(err)
	}
	p.kit.UsePodObjects(values{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- p.kit.RunInBackground(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return p
}

// cloudOf starts a cloud for a test.
func cloudOf(t *testing.T, change ...func(*ecs.Config)) *cloud {
	t.Helper()
	useKey(t)
	c := newCloud(context.WithoutCancel(t.Context()), change...)
	t.Cleanup(c.stop)
	return c
}

func podOf(name string, p program.Program) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "program", Args: p.Args()}}},
	}
}

// until waits until a pod satisfies the condition is.
func until(t *testing.T, p *driver, name, what string, is func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		pod, err := p.kit.GetPod(ctx, "shop", name)
		if err == nil && is(pod) {
			return pod
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("waited for pod %s to be %s: %+v, %v", name, what, pod, err)
		}
	}
}

// everyMoment returns a function that waits for the next tick. The function fails the test after a minute in
// total.
func everyMoment(t *testing.T) func(what string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ticker := time.NewTicker(20 * time.Millisecond)
	t.Cleanup(func() { ticker.Stop(); cancel() })
	return func(what string) {
		t.Helper()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func isRunning(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }
func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// TestReadinessOnFargate checks the readiness of containers with a passing and a failing probe.
func TestReadinessOnFargate(t *testing.T) {
	p := open(t, cloudOf(t))
	for name, need := range map[string][]string{"well": nil, "ill": {"/tmp/ready"}} {
		pod := podOf(name, program.Program{Stay: program.Forever})
		pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: append([]string{"program"}, program.Program{Need: need}.Args()...)},
		}}
		if err := p.kit.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	until(t, p, "well", "ready", func(pod *corev1.Pod) bool { return isRunning(pod) && pod.Status.ContainerStatuses[0].Ready })
	until(t, p, "ill", "running and not ready", func(pod *corev1.Pod) bool {
		return isRunning(pod) && !pod.Status.ContainerStatuses[0].Ready
	})
}

// TestEarlyEnd checks a container that ends before ECS restarts it. The pod has failed, whatever its exit code, and its status says
// why.
func TestEarlyEnd(t *testing.T) {
	p := open(t, cloudOf(t, func(c *ecs.Config) { c.Quick = false }))
	pod := podOf("early", program.Program{})
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	if err := p.kit.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	end := until(t, p, "early", "over", isOver)
	if end.Status.Phase != corev1.PodFailed || !strings.Contains(end.Status.Message, "did not start it again") {
		t.Errorf("got %s: %s", end.Status.Phase, end.Status.Message)
	}
}

// TestSpotInterruption checks that an interrupted task has failed, and that its containers have no invented exit
// code of 0.
func TestSpotInterruption(t *testing.T) {
	c := cloudOf(t, func(c *ecs.Config) { c.CapacityProviders = []string{Spot} })
	p := open(t, c)
	pod := podOf("spot", program.Program{Stay: program.Forever})
	pod.Annotations = map[string]string{AnnotationCapacityProvider: Spot}
	if err := p.kit.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	until(t, p, "spot", "running", isRunning)
	id, err := c.task(pod)
	if err != nil {
		t.Fatal(err)
	}
	c.Interrupt(id)
	end := until(t, p, "spot", "over", isOver)
	if end.Status.Phase != corev1.PodFailed || end.Status.Reason != "SpotInterruption" {
		t.Errorf("got %s, %s: %s", end.Status.Phase, end.Status.Reason, end.Status.Message)
	}
}

// TestReplicasShare checks that many equal pods use one definition and one secret. ECS accepts one registration
// a second.
func TestReplicasShare(t *testing.T) {
	c := cloudOf(t)
	c.Limit("RegisterTaskDefinition", 1, 1)
	p := open(t, c)
	const n = 8
	errs := make(chan error, n)
	for i := range n {
		go func() {
			pod := podOf(fmt.Sprintf("replica-%d", i), program.Program{Stay: program.Forever})
			pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}}}
			errs <- p.kit.CreatePod(t.Context(), pod)
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := c.Definitions(); got != 1 {
		t.Errorf("%d pods that say the same made %d definitions, want one", n, got)
	}
	if got := len(c.Requests("CreateSecret")); got != 2 { // this secret, and the key of names
		t.Errorf("%d secrets were made, want 2", got)
	}
	if got := len(c.Requests("RunTask")); got != n {
		t.Errorf("%d tasks were asked for, want %d", got, n)
	}
}

// policy returns the actions of the policy in the README.
func policy(t *testing.T) (actions []string) {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(readme), "```json\n")
	text, _, _ = strings.Cut(text, "```")
	var said struct {
		Statement []struct{ Action []string }
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil || !found {
		t.Fatalf("the policy of the README: %v", err)
	}
	for _, s := range said.Statement {
		actions = append(actions, s.Action...)
	}
	return actions
}

// TestPolicy checks that the rights of the policy in the README are enough for a pod, and that each of them is
// needed.
func TestPolicy(t *testing.T) {
	useKey(t)
	all := policy(t)
	if err := live(t, all); err != nil {
		t.Errorf("with the policy of the README: %v", err)
	}
	for i, action := range all {
		err := live(t, slices.Delete(slices.Clone(all), i, i+1))
		if err == nil || !strings.Contains(err.Error(), action) {
			t.Errorf("without %s: got %v, want an error that names it", action, err)
		}
	}
}

// live runs a pod with a secret, with the given rights. Two nodes of a cluster do so, and the second one finds
// the secret.
func live(t *testing.T, allow []string) error {
	t.Helper()
	c := newCloud(t.Context(), func(c *ecs.Config) { c.Keys = map[string]ecs.Key{testKey: {Secret: testSecret, Allow: allow}} })
	defer c.stop()
	conf, err := c.config("home")
	if err != nil {
		return err
	}
	for i := range 2 {
		p, err := newDriver(t.Context(), cli.ProviderInput{NodeName: "node"}, conf, quick)
		if err != nil {
			return err
		}
		p.kit.UsePodObjects(values{})
		p.kit.UsePodTokens(values{})
		if i == 0 {
			if err := p.Examine(t.Context()); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		done := make(chan error, 1)
		go func() { done <- p.kit.RunInBackground(ctx) }()
		err = lives(ctx, p, fmt.Sprintf("pod-%d", i))
		cancel()
		if err = errors.Join(err, <-done); err != nil {
			return err
		}
	}
	return nil
}

func lives(ctx context.Context, p *driver, name string) error {
	pod := podOf(name, program.Program{Stay: program.Forever})
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: token}}
	if err := p.kit.Cache().Wait(ctx); err != nil {
		return err
	}
	if err := p.kit.CreatePod(ctx, pod); err != nil {
		return err
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if err, _ := p.kit.Cache().LastError(); err != nil {
			return err
		}
		if got, err := p.kit.GetPod(ctx, "shop", name); err == nil && isRunning(got) {
			break
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if _, _, err := p.client.log(ctx, logGroup, "vk/main/none", "", time.Time{}); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	if _, err := p.kit.GetStatsSummary(ctx); err != nil {
		return err
	}
	c := &caller{}
	if err := p.kit.RunInContainer(ctx, "shop", name, "main", append([]string{"program"}, program.Program{Print: []string{"out"}, Stderr: []string{"err"}}.Args()...), c); err != nil || c.out.String() != "out\nerr\n" {
		return fmt.Errorf("exec: %q, %w", c.out.String(), err)
	}
	return p.kit.DeletePod(ctx, pod)
}

// caller is a caller of a command without input.
type caller struct {
	api.AttachIO
	out strings.Builder
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func (c *caller) Stdin() io.Reader            { return nil }
func (c *caller) Stdout() io.WriteCloser      { return unclosed{&c.out} }
func (c *caller) Stderr() io.WriteCloser      { return nil }
func (c *caller) TTY() bool                   { return false }
func (c *caller) Resize() <-chan api.TermSize { return nil }

// TestRoundsAreOneRequest checks that a round at rest asks about 100 of 1000 tasks, that ten rounds cover all
// tasks, and that tasks in transition come first.
func TestRoundsAreOneRequest(t *testing.T) {
	w := inquiries{}
	var all []poll.Known[ecstypes.Task]
	for i := range 1000 {
		all = append(all, poll.Known[ecstypes.Task]{Instance: ecstypes.Task{TaskArn: aws.String(fmt.Sprintf("arn-%04d", i)), LastStatus: aws.String(stateRunning), DesiredStatus: aws.String(stateRunning)}})
	}
	seen := map[string]bool{}
	begin := time.Now()
	for round := range 10 {
		next := w.next(all)
		if len(next) != batch {
			t.Fatalf("a round at rest asks about %d tasks, want %d", len(next), batch)
		}
		var told []ecstypes.Task
		for _, arn := range next {
			seen[arn] = true
			told = append(told, ecstypes.Task{TaskArn: aws.String(arn)})
		}
		w.note(begin.Add(time.Duration(round)*time.Second), told, nil)
	}
	if len(seen) != len(all) {
		t.Errorf("ten rounds asked about %d of %d tasks", len(seen), len(all))
	}
	all[999].Instance.LastStatus = aws.String("PENDING")
	all[500].Instance.LastStatus = aws.String(stateStopped)
	all[700].Stopping = true
	next := w.next(all)
	if len(next) != batch || !slices.Contains(next[:2], "arn-0999") || !slices.Contains(next[:2], "arn-0700") || slices.Contains(next, "arn-0500") {
		t.Errorf("asked about %v", next)
	}
}

// TestTaskThatDoesNotShowYetIsNotGone checks a task that ECS has just run: ECS may deny it for a while, however
// often it is asked.
func TestTaskThatDoesNotShowYetIsNotGone(t *testing.T) {
	p, _ := hearing(t)
	pod := podOf("a", program.Program{})
	pod.Status.Phase = corev1.PodPending
	task := ecstypes.Task{TaskArn: aws.String("arn:1"), LastStatus: aws.String("PENDING"), DesiredStatus: aws.String(stateRunning)}
	for key, value := range p.mapping.owner.Tags(identity.Of(pod)) {
		task.Tags = append(task.Tags, ecstypes.Tag{Key: &key, Value: &value})
	}
	p.kit.Cache().Accepted(pod, task)
	round := func() (known bool) {
		told, err := p.Changed(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		p.kit.Cache().Take(t.Context(), time.Now(), told...)
		_, _, known = p.kit.Cache().Get(pod.UID)
		return known
	}
	p.client.http.Transport = (&letters{}).transport() // this service has no task
	for range 2 * goneAfter {
		if !round() {
			t.Fatal("a task that ECS has not shown yet is gone")
		}
	}
	p.client.http.Transport = oneTask(task)
	round()
	p.client.http.Transport = (&letters{}).transport()
	for i := range goneAfter {
		if known := round(); known == (i+1 == goneAfter) {
			t.Errorf("after %d answers that ECS does not have it, the pod is known: %t", i+1, known)
		}
	}
}

// TestGoneIsSaidThrice checks that a task is gone only after ECS has reported it as missing three times in a
// row.
func TestGoneIsSaidThrice(t *testing.T) {
	w := inquiries{}
	told := []ecstypes.Task{{TaskArn: aws.String("told")}}
	w.note(time.Now(), told, nil)
	for i, want := range []int{0, 0, 1} {
		if got := w.note(time.Now(), nil, []string{"told"}); len(got) != want {
			t.Errorf("after %d answers %v are gone, want %d", i+1, got, want)
		}
	}
	w.note(time.Now(), told, nil)
	if got := w.note(time.Now(), nil, []string{"told"}); len(got) != 0 {
		t.Errorf("a task that was there again is gone: %v", got)
	}
	w.keep(map[string]bool{"other": true})
	if len(w.of) > 0 {
		t.Errorf("what is known of tasks that ECS has forgotten is kept: %v", w.of)
	}
}

// TestNetworkReadiness checks that this node probes the ports of containers itself.
func TestNetworkReadiness(t *testing.T) {
	p := open(t, cloudOf(t))
	_, heard := listens(t)
	pod := podOf("network", program.Program{Stay: program.Forever})
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	pod.Spec.Containers[0].ReadinessProbe = asksPort(heard)
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "closed", Image: "program", Args: program.Program{Stay: program.Forever}.Args(), ReadinessProbe: asksPort(silent(t))})
	if err := p.kit.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	got := until(t, p, "network", "ready in its first container", func(pod *corev1.Pod) bool { return isRunning(pod) && pod.Status.ContainerStatuses[0].Ready })
	if got.Status.ContainerStatuses[1].Ready {
		t.Error("nobody listens on the port of the other container, and it is ready")
	}
	if err := p.kit.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// TestChangesAreTold checks that, with a queue, a change is seen at once, although the next round is an hour
// away.
func TestChangesAreTold(t *testing.T) {
	c := cloudOf(t, func(c *ecs.Config) { c.Lag = 0 })
	conf, err := c.config("home")
	if err != nil {
		t.Fatal(err)
	}
	p, err := newDriver(t.Context(), cli.ProviderInput{NodeName: "node"}, conf, service.Config{Busy: time.Hour, Rest: time.Hour, Idle: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	p.kit.UsePodObjects(values{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- p.kit.RunInBackground(ctx) }()
	pod := podOf("told", program.Program{Stay: program.Forever})
	if err := p.kit.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	until(t, p, "told", "running", isRunning)
	id, err := c.task(pod)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.Interrupt(id)
	}
	until(t, p, "told", "over", isOver) // within a minute, although the next round is in half an hour
	tick := everyMoment(t)
	for c.Queued() > 0 {
		tick("the messages are removed")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := len(c.Requests("ListTasks")); n > 3 {
		t.Errorf("%d lists were made beside the queue", n)
	}
}

// TestNoTaskIsLeft checks that the deletion of a pod also deletes a task whose RunTask had no answer, and a task
// that does not show yet.
func TestNoTaskIsLeft(t *testing.T) {
	for name, lose := range map[string]bool{"a lost answer": true, "a task that shows late": false} {
		t.Run(name, func(t *testing.T) {
			c := cloudOf(t, func(c *ecs.Config) { c.Lag = time.Second })
			at := quick
			at.SeenWithin = time.Minute // a busy machine may take longer than usual to notice it
			p := openAt(t, c, at)
			pod := podOf("left", program.Program{Stay: program.Forever})
			if err := p.kit.Cache().Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if lose {
				c.Break(emulator.Fault{Operations: []string{"RunTask"}, Times: 1, Lose: true})
			}
			if err := p.kit.CreatePod(t.Context(), pod); (err != nil) != lose {
				t.Fatalf("create: %v", err)
			}
			tick := everyMoment(t)
			for {
				err := p.kit.DeletePod(t.Context(), pod)
				if errdefs.IsNotFound(err) {
					t.Fatalf("the pod is gone, and its task is %v: %v", c.Running(identity.TagUID, string(pod.UID)), err)
				}
				if err == nil {
					break
				}
				tick("the task is found and stopped: " + err.Error())
			}
			for len(c.Running(identity.TagUID, string(pod.UID))) > 0 {
				tick("the task has stopped")
			}
		})
	}
}

// TestTaskOfAnEarlierRequestIsFound checks a pod whose RunTask had no answer and whose next request differs. ECS
// refuses the repeated token. The pod has the task of the first request, and no second task.
func TestTaskOfAnEarlierRequestIsFound(t *testing.T) {
	c := cloudOf(t)
	p := open(t, c)
	pod := podOf("again", program.Program{Stay: program.Forever})
	if err := p.kit.Cache().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Break(emulator.Fault{Operations: []string{"RunTask"}, Times: 1, Lose: true})
	if err := p.kit.CreatePod(t.Context(), pod); err == nil {
		t.Fatal("the answer was not lost")
	}
	pod = pod.DeepCopy()
	pod.Annotations = map[string]string{AnnotationCapacityProvider: Spot}
	tick := everyMoment(t)
	for {
		err := p.kit.CreatePod(t.Context(), pod)
		if err == nil {
			break
		}
		if errdefs.IsInvalidInput(err) {
			t.Fatalf("with another request: %v", err)
		}
		tick("the task of the first request is found: " + err.Error())
	}
	until(t, p, "again", "running", isRunning)
	if _, err := c.task(pod); err != nil {
		t.Error(err)
	}
}

// TestTaskThatStopsIsNotAskedTo checks that a second deletion of a pod, while its task stops, makes no second
// request.
func TestTaskThatStopsIsNotAskedTo(t *testing.T) {
	c := cloudOf(t)
	p := open(t, c)
	pod := podOf("stops", program.Program{Stay: program.Forever})
	if err := p.kit.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	until(t, p, "stops", "running", isRunning)
	for range 3 {
		if err := p.kit.DeletePod(t.Context(), pod); err != nil && !errdefs.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	if n := len(c.Requests("StopTask")); n != 1 {
		t.Errorf("%d requests to stop the task, want one", n)
	}
}

// TestRunTaskBlamesNoPod checks that a task that ECS refuses is retried if ECS has accepted its definition.
func TestRunTaskBlamesNoPod(t *testing.T) {
	c := cloudOf(t, func(c *ecs.Config) { c.VCPUs = 1 })
	p := open(t, c)
	pods := []*corev1.Pod{podOf("one", program.Program{Stay: program.Forever}), podOf("two", program.Program{Stay: program.Forever})}
	for _, pod := range pods {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	}
	if err := p.kit.CreatePod(t.Context(), pods[0]); err != nil {
		t.Fatal(err)
	}
	err := p.kit.CreatePod(t.Context(), pods[1])
	if after, _ := errdefs.RetryAfterOf(err); err == nil || after == 0 || errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "reached the limit") {
		t.Errorf("a quota that is used up: got %v, want an error that passes", err)
	}
}

// TestSecretsThatWereRemoved checks that a cleanup that removes secrets by age costs one pod, and not all later
// ones.
func TestSecretsThatWereRemoved(t *testing.T) {
	c := cloudOf(t)
	p := open(t, c)
	withSecret := func(name string) *corev1.Pod {
		pod := podOf(name, program.Program{Stay: program.Forever})
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}}}
		if err := p.kit.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	withSecret("first")
	until(t, p, "first", "running", isRunning)
	for _, name := range c.Secrets() {
		if !strings.HasPrefix(name, "vk-key-") {
			if err := p.client.drop(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	withSecret("second")
	failed := until(t, p, "second", "over", isOver)
	if failed.Status.Phase != corev1.PodFailed || !strings.Contains(failed.Status.Message, "ResourceInitializationError") {
		t.Errorf("got %s: %s", failed.Status.Phase, failed.Status.Message)
	}
	withSecret("third")
	until(t, p, "third", "running", isRunning)
}

// TestKeysAreReadAgain checks that a changed key file is read again.
func TestKeysAreReadAgain(t *testing.T) {
	useKey(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	file := filepath.Join(t.TempDir(), "credentials")
	write := func(id string) {
		if err := os.WriteFile(file, []byte("[default]\naws_access_key_id = "+id+"\naws_secret_access_key = x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("AKIDFIRST")
	c, err := newClient(t.Context(), testConfig(t, func(c *Config) { c.CredentialsFile = file }))
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.signed.credentials.Retrieve(t.Context())
	if err != nil || first.AccessKeyID != "AKIDFIRST" || !first.CanExpire || time.Until(first.Expires) > readAgain {
		t.Fatalf("got %s until %s, %v", first.AccessKeyID, first.Expires, err)
	}
	write("AKIDSECOND")
	c.signed.credentials.(*aws.CredentialsCache).Invalidate()
	second, err := c.signed.credentials.Retrieve(t.Context())
	if err != nil || second.AccessKeyID != "AKIDSECOND" {
		t.Errorf("got %s, %v", second.AccessKeyID, err)
	}
	if _, err := newClient(t.Context(), testConfig(t, func(c *Config) { c.CredentialsFile = file + "s" })); err == nil {
		t.Error("a file that is not there is no error")
	}
}
