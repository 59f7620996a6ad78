// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// stayingProgram returns a program without an end before the stop signal.
func stayingProgram() program.Program { return program.Program{Stay: program.Forever} }

// newPod returns a pod of the check with p in its container main. The pod is never restarted, unless the backend
// restarts everything, and has a second to stop.
func (c *C) newPod(name string, p program.Program) *corev1.Pod {
	grace, links, policy := int64(1), false, corev1.RestartPolicyNever
	if c.restarts {
		policy = corev1.RestartPolicyAlways
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.ns, Name: name, UID: uuid.NewUUID(), CreationTimestamp: metav1.Now(),
			Labels: map[string]string{"app": "contract"}, Annotations: map[string]string{"contract": "yes"},
		},
		Spec: corev1.PodSpec{
			NodeName: nodeName, RestartPolicy: policy, TerminationGracePeriodSeconds: &grace,
			DNSPolicy: corev1.DNSClusterFirst, EnableServiceLinks: &links, SecurityContext: &corev1.PodSecurityContext{},
		},
	}
	c.addContainer(pod, "main", p)
	return pod
}

// addContainer adds a container to a pod.
func (c *C) addContainer(pod *corev1.Pod, name string, p program.Program) *corev1.Container {
	pod.Spec.Containers = append(pod.Spec.Containers, c.newContainer(pod, name, p))
	return &pod.Spec.Containers[len(pod.Spec.Containers)-1]
}

// newContainer returns a container for p.
func (c *C) newContainer(pod *corev1.Pod, name string, p program.Program) corev1.Container {
	k := corev1.Container{
		Name: name, ImagePullPolicy: corev1.PullIfNotPresent,
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	if err := c.h.Container(pod, &k, p); err != nil {
		c.Skipf("the harness cannot run this program: %v", err)
	}
	return k
}

// lastPort counts the ports given to checks. Contracts that run at the same time begin at different ports.
var lastPort = func() *atomic.Uint32 {
	n := new(atomic.Uint32)
	n.Store(rand.Uint32())
	return n
}()

// unusedPort returns an unused port of this machine, because the pods of some backends have the machine's network. A
// fixed port might be in use by another contract at the same time. No two checks get the same port. The ports
// are below the range for outgoing connections.
func (c *C) unusedPort() int32 {
	const lowest, many = 20_000, 10_000
	var err error
	for range 100 {
		port := lowest + int32(lastPort.Add(1)%many)
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(c.ctx, "tcp", fmt.Sprintf(":%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	c.Fatalf("find a port on which nobody listens: %v", err)
	return 0
}

// execCommand returns the command for p in a container.
func (c *C) execCommand(p program.Program) []string {
	if c.h.Command == nil {
		c.Skipf("the harness has no commands")
	}
	command, err := c.h.Command(p)
	if err != nil {
		c.Skipf("the harness cannot run this command: %v", err)
	}
	return command
}

// needsPrint skips checks of the output of programs if containers have their own log.
func (c *C) needsPrint() {
	if c.h.OwnLog {
		c.Skipf("containers do not print what their program says")
	}
}

// tryCreate calls CreatePod as the node does.
func (c *C) tryCreate(ctx context.Context, pod *corev1.Pod) error {
	s := c.openProvider()
	pod = pod.DeepCopy()
	pod.Status = corev1.PodStatus{}
	if _, ok := s.provider.(node.PodObjectsUser); !ok {
		if err := podenv.Resolve(ctx, c.objects.environmentConfig(), pod); err != nil {
			c.Fatalf("resolve the environment of pod %s: %v", pod.Name, err)
		}
	}
	return s.provider.CreatePod(ctx, pod)
}

// createPod makes a pod.
func (c *C) createPod(pod *corev1.Pod) {
	c.objects.add(pod)
	if err := c.tryCreate(c.ctx, pod); err != nil {
		c.Fatalf("CreatePod of %s: %v", pod.Name, err)
	}
}

// startPod makes a pod and waits until it runs.
func (c *C) startPod(pod *corev1.Pod) *corev1.Pod {
	c.createPod(pod)
	return c.untilPod(pod, "to run", isRunning)
}

// startProgram makes a pod with a program that prints "begun", and waits for the output: a process that has just
// started dies of a signal that its program would catch.
func (c *C) startProgram(pod *corev1.Pod) {
	c.startPod(pod)
	if _, ok := c.openProvider().provider.(logger); !ok || c.h.OwnLog {
		return
	}
	c.awaitCondition("the program to begin", func() (bool, string) {
		lines := c.logLines(pod, "main")
		return slices.Contains(lines, "begun"), fmt.Sprintf("it has printed %q", lines)
	})
}

// printingProgram returns a program for printed: if containers are restarted, the program stays, so that it prints
// once.
func (c *C) printingProgram(p program.Program) program.Program {
	if c.restarts {
		p.Stay = program.Forever
	}
	return p
}

// printedLines makes a pod of printing programs, and returns the lines of its container main. If the pod ends, it
// returns all lines. Otherwise it returns when the lines are the wanted ones, or when the patience of the
// harness is over.
func (c *C) printedLines(pod *corev1.Pod, wanted func(lines []string) bool) (lines []string) {
	if !c.restarts {
		c.runToEnd(pod)
		return c.logLines(pod, "main")
	}
	c.startPod(pod)
	ctx, cancel := context.WithTimeout(c.ctx, c.h.Patience)
	defer cancel()
	for lines = c.logLines(pod, "main"); !wanted(lines) && ctx.Err() == nil; lines = c.logLines(pod, "main") {
		pauseFor(ctx, c.h.Every)
	}
	return lines
}

// runToEnd makes a pod and waits until it has ended.
func (c *C) runToEnd(pod *corev1.Pod) *corev1.Pod {
	c.createPod(pod)
	return c.untilPod(pod, "to end", isTerminal)
}

func isRunning(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && len(p.Status.ContainerStatuses) == len(p.Spec.Containers) &&
		!slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running == nil })
}

func isTerminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// currentPod returns a pod as the provider shows it now, or its last report if the pod has ended; nil without either.
func (c *C) currentPod(ctx context.Context, pod *corev1.Pod) *corev1.Pod {
	s := c.openProvider()
	got, err := s.provider.GetPod(ctx, pod.Namespace, pod.Name)
	if err == nil && got != nil && got.UID == pod.UID {
		return got.DeepCopy()
	}
	if err != nil && !errdefs.IsNotFound(err) {
		c.Logf("GetPod of %s: %v", pod.Name, err)
	}
	if all := s.reportsOf(pod.UID); len(all) > 0 && isTerminal(all[len(all)-1]) {
		return all[len(all)-1]
	}
	return nil
}

// isGone reports whether the provider has confirmed the stop of a pod.
func (c *C) isGone(ctx context.Context, pod *corev1.Pod) bool {
	got, err := c.openProvider().provider.GetPod(ctx, pod.Namespace, pod.Name)
	if err != nil {
		return errdefs.IsNotFound(err)
	}
	return got == nil || got.UID != pod.UID || isTerminal(got)
}

// awaitCondition waits for a condition. Its error includes the last state.
func (c *C) awaitCondition(what string, condition func() (ok bool, state string)) {
	c.untilEvery(c.h.Every, what, condition)
}

// untilEvery is awaitCondition with the given interval, for an expensive condition.
func (c *C) untilEvery(every time.Duration, what string, condition func() (ok bool, state string)) {
	ctx, cancel := context.WithTimeout(c.ctx, c.h.Patience)
	defer cancel()
	for {
		ok, state := condition()
		if ok {
			return
		}
		if ctx.Err() != nil {
			c.Fatalf("waited %s for %s: %s", c.h.Patience, what, state)
		}
		pauseFor(ctx, every)
	}
}

// untilPod waits for a state of a pod, and returns the pod in it.
func (c *C) untilPod(pod *corev1.Pod, what string, ok func(*corev1.Pod) bool) (seen *corev1.Pod) {
	c.awaitCondition(fmt.Sprintf("pod %s %s", pod.Name, what), func() (bool, string) {
		seen = c.currentPod(c.ctx, pod)
		return seen != nil && ok(seen), describePod(seen)
	})
	return seen
}

// describePod returns the state of a pod as text.
func describePod(p *corev1.Pod) string {
	if p == nil {
		return "the provider does not show it"
	}
	text := fmt.Sprintf("%s %s %s", p.Status.Phase, p.Status.Reason, p.Status.Message)
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		text += fmt.Sprintf("; %s: ready %t, restarts %d, ", s.Name, s.Ready, s.RestartCount)
		switch {
		case s.State.Running != nil:
			text += "running"
		case s.State.Terminated != nil:
			text += fmt.Sprintf("ended %d %s %s", s.State.Terminated.ExitCode, s.State.Terminated.Reason, s.State.Terminated.Message)
		case s.State.Waiting != nil:
			text += fmt.Sprintf("waits: %s %s", s.State.Waiting.Reason, s.State.Waiting.Message)
		}
	}
	return text
}

// tryDelete calls DeletePod as the node does. A grace below 0 is the grace period of the pod.
func (c *C) tryDelete(pod *corev1.Pod, grace int64) error {
	p := pod.DeepCopy()
	if seen := c.currentPod(c.ctx, pod); seen != nil {
		p.Status = seen.Status
	}
	if grace < 0 {
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	at := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second))
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	return c.openProvider().provider.DeletePod(c.ctx, p)
}

// removePod deletes a pod and waits until it is gone.
func (c *C) removePod(pod *corev1.Pod, grace int64) {
	if err := c.tryDelete(pod, grace); err != nil && !errdefs.IsNotFound(err) {
		c.Fatalf("DeletePod of %s: %v", pod.Name, err)
	}
	c.untilGone(pod)
}

func (c *C) untilGone(pod *corev1.Pod) {
	c.awaitCondition(fmt.Sprintf("the end of pod %s", pod.Name), func() (bool, string) {
		return c.isGone(c.ctx, pod), describePod(c.currentPod(c.ctx, pod))
	})
}

// statusOf returns the status of an existing container.
func (c *C) statusOf(pod *corev1.Pod, name string) corev1.ContainerStatus {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.Name == name {
			return s
		}
	}
	c.Fatalf("pod %s has no status of container %s: %s", pod.Name, name, describePod(pod))
	return corev1.ContainerStatus{}
}

// endOf returns how a container ended; the container must have ended.
func (c *C) endOf(pod *corev1.Pod, name string) corev1.ContainerStateTerminated {
	s := c.statusOf(pod, name)
	if s.State.Terminated == nil {
		c.Fatalf("container %s of pod %s has not ended: %s", name, pod.Name, describePod(pod))
	}
	return *s.State.Terminated
}
