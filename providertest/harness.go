// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// Harness defines how to test a provider. Backend and Container are required.
type Harness struct {
	// Backend makes the backend for one check. It lives until ctx ends, after every provider on it.
	Backend func(ctx context.Context, env Env) (*Backend, error)
	// Container fills in the image, the command and all other fields for a container that runs the program. It may also change the pod
	// before the pod is created. If it returns an error because the backend cannot run such a program, the check is skipped. See Shell.
	Container func(pod *corev1.Pod, c *corev1.Container, p program.Program) error
	// Command returns the command for the program in a running container, for exec, probes and hooks. Nil: such
	// checks are skipped.
	Command func(p program.Program) ([]string, error)

	// OwnLog means that containers print a log made by the backend, of at least five lines in five seconds, instead of the output of their
	// program. Checks of the output of programs are skipped, and checks of logs compare parts of a log with the whole.
	OwnLog bool
	// OwnStartErrors means that the service uses its own exit codes and reasons for containers that cannot start. Otherwise they are a
	// kubelet's: 128 and StartError.
	OwnStartErrors bool
	// Patience is the longest time until a change is visible. Default one minute.
	Patience time.Duration
	// Every is the interval at which a check polls for the expected change. Default 10 ms.
	Every time.Duration
	// Tick is the unit of the times in programs. It must not be shorter than the time unit of the backend, and must be longer than the
	// delay of its lists. Many programs run for one or two ticks, and a check that waits for a running program fails if no list shows it in
	// time. Default one second.
	Tick time.Duration
	// Many is the number of pods in the checks of many pods. Default 20.
	Many int
	// Parallel is the number of checks that Run runs at once, except for checks that must be alone. Default 1.
	Parallel int

	// Unproven has the declared features that this harness cannot prove, and the reasons. If such a feature is proven nevertheless, the run
	// fails. A check that needs the feature and fails still fails the run: name that check in Except too.
	Unproven map[capability.Feature]string
	// AllowUnproven makes unproven declared features count as skipped, for example if a backend cannot be
	// broken. A failed check of a feature still fails the run.
	AllowUnproven bool
	// Except has the names of checks to skip, and the reasons. No declaration covers the requests of a service, or that it keeps an
	// instance in its lists after a delete. Until such checks are here, checks such as attach/output, stats/summary and deletion/told fail.
	Except map[string]string
	// Extra has additional checks.
	Extra []Check
	// Only matches the names of the checks to run. Nil: all of them.
	Only *regexp.Regexp

	// Each is called after every check of Verify. Nil: no call.
	Each func(Result)
	// Subject is the subject of the results, if they are stored.
	Subject Subject
}

// Env has the inputs for the provider of one check.
type Env struct {
	// ProviderConfig is the input of a provider from nodeutil. The node has only a name.
	nodeutil.ProviderConfig
	// Namespace is the namespace of the pods of the check. No other check uses it.
	Namespace string
	// Logf records log lines for failed checks.
	Logf func(format string, args ...any)
}

// Backend is a backend for providers. Only Open is required: a check that needs another function is skipped if
// the function is nil.
type Backend struct {
	// Open opens the provider; it lives until ctx ends. After that, and after RunInBackground (if the provider
	// has it) has returned, Open is called again, as by a restarted daemon: it must find the earlier pods.
	Open func(ctx context.Context) (node.PodLifecycleHandler, error)
	// Close removes leftovers at the backend, after the last provider on it has ended.
	Close func() error

	// Instances returns the number of running instances of the pod, independently of the provider.
	Instances func(pod *corev1.Pod) (int, error)
	// Kill ends the main process of a container, like a crash with SIGKILL.
	Kill func(pod *corev1.Pod, container string) error
	// Lose makes the instance of a pod vanish without a known end, as if the backend or another client had removed it.
	Lose func(pod *corev1.Pod) error
	// Outage makes every request to the backend fail, until it is called with false.
	Outage func(on bool)
	// Throttle makes the backend answer every request with "too many requests", until it is called with false.
	Throttle func(on bool)
	// Stale freezes the lists of the backend at their current state, until it is called with false. Requests for
	// one pod still get the current state.
	Stale func(on bool)
	// LoseAnswer makes the next start of a pod succeed at the backend, but loses the answer.
	LoseAnswer func()

	// Left returns the names of everything that this provider has at the backend, by kind: instances, definitions, secrets, files, folders,
	// volumes, log streams, network interfaces, and everything else that costs money, disk space or quota. It includes things that
	// Instances does not count.
	Left func() (map[string][]string, error)
	// Kept names the kinds of things that may outlive their pods, each with a rule and a bound.
	Kept map[string]Kept
}

// Kept describes the things of one kind kept by a provider after its pods are gone.
type Kept struct {
	// Most is the maximum number of new things of the kind after Harness.Many pods. It is more than 0.
	Most int
	// Rule is the reason why they are kept, and their bound: a number, a time, or a setting of the backend.
	Rule string
}

// Shell returns functions for Harness.Container and Harness.Command: programs are scripts in an image
// with a POSIX shell, such as busybox.
func Shell(image string) (container func(*corev1.Pod, *corev1.Container, program.Program) error, command func(program.Program) ([]string, error)) {
	return func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
		args, err := p.Shell()
		c.Image, c.Command = image, args
		return err
	}, program.Program.Shell
}

func (h Harness) withDefaults() Harness {
	if h.Patience == 0 {
		h.Patience = time.Minute
	}
	if h.Every == 0 {
		h.Every = 10 * time.Millisecond
	}
	if h.Tick == 0 {
		h.Tick = time.Second
	}
	if h.Many == 0 {
		h.Many = 20
	}
	if h.Each == nil {
		h.Each = func(Result) {}
	}
	if h.Parallel == 0 {
		h.Parallel = 1
	}
	return h
}
