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

// Harness says how a provider is tested. Backend and Container are required.
type Harness struct {
	// Backend makes the backend for one check. It lives until ctx ends, after every provider on it.
	Backend func(ctx context.Context, env Env) (*Backend, error)
	// Container fills in the image, the command and whatever else lets a container of a pod do what the program says; it
	// may change the pod too, before it is created. An error says why the backend cannot run such a program, and skips the
	// check. See Shell.
	Container func(pod *corev1.Pod, c *corev1.Container, p program.Program) error
	// Command returns the command that does what the program says in a container that runs, for exec, probes and
	// hooks. Nil: such checks are skipped.
	Command func(p program.Program) ([]string, error)

	// OwnLog says that containers do not print what their program says but a log of the backend's own
	// making, of at least five lines in five seconds. Checks of what programs print are skipped, and those of logs
	// compare parts of a log with the whole.
	OwnLog bool
	// OwnStartErrors says that the service ends containers that cannot start with exit codes and reasons of its own. Else they are those of a
	// kubelet: 128 and StartError.
	OwnStartErrors bool
	// Patience is how long a change may take until it is seen. Default one minute.
	Patience time.Duration
	// Every is how often a check looks whether what it waits for is there. Default 10 ms.
	Every time.Duration
	// Tick is the unit of the times in programs. It is no shorter than the unit of the times that the backend keeps, and longer than its lists may be late:
	// many programs run for one or two of it, and a check that waits until it sees one run fails if no list shows that. Default one second.
	Tick time.Duration
	// Many is how many pods the checks of many pods make. Default 20.
	Many int
	// Parallel is how many checks Run runs at once, but for those that have to be alone. Default 1.
	Parallel int

	// Unproven are declared features that no check can prove with this harness, and why. One that is proven all the same
	// fails the run. A check that needs the feature and fails still fails the run: name that check in Except too.
	Unproven map[capability.Feature]string
	// AllowUnproven lets declared features that no check could prove count as skipped, as where a backend cannot be broken. A
	// feature whose check failed fails the run all the same.
	AllowUnproven bool
	// Except are checks, by name, that are not run, and why. They count as skipped. No declaration says which requests a service has, or that it keeps
	// an instance in its lists after a delete: without them, checks such as attach/output, stats/summary and deletion/told fail until they are here.
	Except map[string]string
	// Extra are more checks.
	Extra []Check
	// Only are the names of the checks that are run. Nil: all of them.
	Only *regexp.Regexp

	// Each is told of every check that Verify has ended. Nil: nobody is.
	Each func(Result)
	// Subject is what the results are about, if they are to be kept.
	Subject Subject
}

// Env is what a provider is made with for one check.
type Env struct {
	// ProviderConfig is what nodeutil hands to a provider. The node has a name only.
	nodeutil.ProviderConfig
	// Namespace is that of the pods of the check, which no other check uses.
	Namespace string
	// Logf takes down what happens; it is shown when the check fails.
	Logf func(format string, args ...any)
}

// Backend is a backend on which a provider can be opened. Only Open is required: a check that needs another
// function is skipped where it is nil.
type Backend struct {
	// Open opens the provider; it lives until ctx ends. When that has happened and RunInBackground, if the provider has it, has
	// returned, Open is called again, as by a daemon that restarts: it must find the pods of before.
	Open func(ctx context.Context) (node.PodLifecycleHandler, error)
	// Close removes what is left at the backend, after the last provider on it has ended.
	Close func() error

	// Instances returns how many instances of the pod run, whoever asks and whatever the provider knows.
	Instances func(pod *corev1.Pod) (int, error)
	// Kill ends the main process of a container, as when it crashes with SIGKILL.
	Kill func(pod *corev1.Pod, container string) error
	// Lose lets the instance of a pod vanish, as when the backend or somebody else removes it; nobody knows how it ended.
	Lose func(pod *corev1.Pod) error
	// Outage lets every request to the backend fail, until it is called with false.
	Outage func(on bool)
	// Throttle lets the backend answer every request with "too many requests", until it is called with false.
	Throttle func(on bool)
	// Stale lets lists of the backend say what was true when it was called, until it is called with false. Requests for one pod
	// are answered as it is.
	Stale func(on bool)
	// LoseAnswer lets the next request that starts a pod succeed at the backend, and the answer to it get lost.
	LoseAnswer func()

	// Left returns the names of what is at the backend on behalf of this provider, by kind: instances, definitions, secrets, files, folders, volumes, streams
	// of logs, network interfaces, and whatever else costs money, disk or a quota. It names what Instances does not count too.
	Left func() (map[string][]string, error)
	// Kept are the kinds of which some stay after their pods, by a rule with a bound.
	Kept map[string]Kept
}

// Kept is what a provider keeps of one kind after its pods are gone.
type Kept struct {
	// Most is how many things of the kind may be left after Harness.Many lives of pods, beyond those that were there before. It is more than 0.
	Most int
	// Rule says why they are kept, and what bounds them: a number, a time, or a setting of the backend.
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

func (h Harness) complete() Harness {
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
