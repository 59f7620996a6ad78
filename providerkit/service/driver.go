// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
)

// Driver has the requests of one service, and tells the kit how to read the answers. T is an instance as the service tells of it. Methods may be called
// from any goroutine; Identify, Status and Ended are pure functions. Errors do not repeat which pod they are about.
type Driver[T any] interface {
	// List returns every instance of this node. It is complete or an error; see poll.Config.
	List(ctx context.Context) ([]T, error)
	// Create makes the instance of a pod, and returns it as the answer tells of it. The error says whether an instance may exist all the same: it
	// may, unless the error is of the kind invalid-input or from NotMade. AlreadyMade is an instance that exists.
	Create(ctx context.Context, in *Inputs) (T, error)
	// Find returns the instance of a pod, by its UID, name or tags, with a request for it alone. False says that the service shows none.
	Find(ctx context.Context, pod *corev1.Pod) (T, bool, error)
	// Stop asks the service to stop the instance of a pod, which has its grace period, and may return before it has stopped. It is called again
	// until the instance is gone. An error of the kind not-found says that the service does not have it, which lists must confirm; one that
	// says when to try again, too, is reported, and the stop is asked for again.
	Stop(ctx context.Context, pod *corev1.Pod, instance T) error
	// Identify says which pod an instance is. False is an instance of no pod of this node.
	Identify(instance T) (poll.Identity, bool)
	// Status is what an instance makes of a pod. It is called with a lock held. The pod has the status that was told last, also after a restart if the
	// node knows the pod by then: a driver whose service tells only one run of a container takes lastState from there.
	Status(pod *corev1.Pod, instance T) corev1.PodStatus
}

// The optional abilities of a driver. New finds them by assertion.
type (
	// Ender is a driver whose lists have instances that have ended. Without it, a pod that is stopped is there until lists lack it.
	Ender[T any] interface{ Ended(instance T) bool }
	// Annotator is a driver whose instances give their pods annotations.
	Annotator[T any] interface {
		Annotations(instance T) map[string]string
	}
	// Refuser is a driver that refuses pods for more than its declaration says. It is a pure function, which is called before anything that the pod takes from
	// other objects is read. Errors are of the kind invalid-input.
	Refuser interface{ Refuse(pod *corev1.Pod) error }
	// ChangeLister is a driver that asks for what changed alone. Without it, every round is a list.
	ChangeLister[T any] interface {
		Changed(ctx context.Context, since time.Time) ([]T, error)
	}
	// Updater is a driver that changes an instance when its pod changes. Without it, a change of an image is refused, and nothing else reaches the service.
	Updater[T any] interface {
		Update(ctx context.Context, pod *corev1.Pod, instance T) error
	}
	// LogReader is a driver with logs. As with exec and attach, errors do not repeat which container they are about. The log of the run before, of a service that does not keep it,
	// is an error of the kind invalid-input.
	LogReader[T any] interface {
		Logs(ctx context.Context, of Target[T], opts api.ContainerLogOpts) (io.ReadCloser, error)
	}
	// Executor is a driver with exec. That of a Prober calls Begun when the command begins.
	Executor[T any] interface {
		Exec(ctx context.Context, in Target[T], command []string, attach api.AttachIO) error
	}
	// Prober is a driver of a service that lacks probes. This process does them: commands by Exec of the driver, and requests from its own network, so a driver
	// gives none of those where this process does not reach the addresses of pods. Status has Started and Ready of containers without the probes that
	// Lacking returns, and no conditions that follow from them.
	Prober[T any] interface {
		// Lacking returns the probes of a container that the service does not do; nil for each that it does. It is a pure function. A liveness probe
		// beside a startup probe that is returned must be returned, too: the service would not wait.
		Lacking(pod *corev1.Pod, c *corev1.Container) Probes
		// End asks the service to end the instance of a pod because a container has failed a startup or liveness probe, and may return before it has
		// ended. It is asked if the driver is no Restarter, or the restart policy says so. The reason is text.
		End(ctx context.Context, of Target[T], reason string) error
	}
	// Restarter is a Prober whose service can start a container again, with others of the pod if it does not do so with one. It may return before
	// that has happened.
	Restarter[T any] interface {
		Restart(ctx context.Context, of Target[T], reason string) error
	}
	// Attacher is a driver with attach.
	Attacher[T any] interface {
		Attach(ctx context.Context, to Target[T], attach api.AttachIO) error
	}
	// Forwarder is a driver with port-forward.
	Forwarder[T any] interface {
		Forward(ctx context.Context, to Target[T], port int32, stream io.ReadWriteCloser) error
	}
	// Measurer is a driver that knows what pods use.
	Measurer[T any] interface {
		Stats(ctx context.Context, of []Target[T]) ([]statsv1alpha1.PodStats, error)
	}
	// Renewer is a driver that replaces files of an instance. It is called before a token ends, with the tokens in Inputs.Files and nothing else.
	Renewer[T any] interface {
		Renew(ctx context.Context, in *Inputs, instance T) error
	}
	// Starter is a driver of a service that does not start a container again, or not as the API has it. The kit starts it again by the restart policy of
	// the pod, with the back-off of a kubelet, counts the runs, and tells how the run before ended. Start starts the container of an instance that
	// has ended, and returns the instance as the service tells of it after the start: of the new run, which may have ended by then. Of
	// an instance with several containers nothing is started. The count goes on after a restart of the process with the status that the cluster has,
	// or with that of Status. A Starter that is a Prober is a Restarter, whose Restart lets the container end.
	Starter[T any] interface {
		Start(ctx context.Context, pod *corev1.Pod, instance T) (T, error)
	}
	// Remover is a driver that makes things which outlive an instance, such as files. It names them with Provider.Leave when the instance needs them no
	// more, or in Stop and Gone, where Remove is an error as long as the instance needs them. Remove is called until it succeeds or is an error of the kind
	// not-found: again after 2 s, and later and later up to 5 min, or when the error says. The first failure is logged. Names do not survive a restart: a
	// driver whose service lists what is left names that again in Work.
	Remover interface {
		Remove(ctx context.Context, name string) error
	}
	// Mourner is a driver that is told of a pod that has nothing at the service: its create was refused for ever, as invalid-input, or its deletion found
	// none. A create that is NotMade is asked again, so Gone is not called.
	Mourner interface{ Gone(pod *corev1.Pod) }
	// Worker is a driver with work of its own beside the lists, such as a stream of events that it gives to Provider.Cache.
	Worker interface{ Work(ctx context.Context) }
	// Follower is a driver of a service that tells by itself what changes. Follow takes the place of the rounds: it gives each change to Take and each
	// list to TakeAll of Provider.Cache, and tells it by Fails whether it hears of changes.
	Follower interface{ Follow(ctx context.Context) }
	// Closer is a driver with something to close when nothing of the provider runs any more.
	Closer interface{ Close() }
	// Pinger is a driver that asks the service how it is, which alone decides whether the node is Ready. Without it, the lists tell, with no request more.
	Pinger interface {
		Ping(ctx context.Context) error
	}
	// NodeConfigurer is a driver that adds to the Node object, which has the capacity and conditions of a node that is well.
	NodeConfigurer interface {
		ConfigureNode(ctx context.Context, n *corev1.Node)
	}
	// NodeReporter is a driver whose node changes while it runs.
	NodeReporter interface {
		NotifyNodeStatus(ctx context.Context, report func(*corev1.Node))
	}
	// Examiner is a driver that tells the command doctor why it would not work. Without it, a Pinger must answer, or a list succeed.
	Examiner interface {
		Examine(ctx context.Context) error
	}
)

// Target is a pod that a request is about, with its instance. Container and State are of the container, if the request is about one.
type Target[T any] struct {
	Pod       *corev1.Pod // with the status as it was seen last; not to be changed
	Instance  T
	Container string
	State     *corev1.ContainerStatus // nil if it is not known
}

// Probes are probes of a container.
type Probes struct{ Startup, Liveness, Readiness *corev1.Probe }

// isRunning refuses a session in a container that does not run.
func (t Target[T]) isRunning() error {
	if t.State == nil || t.State.State.Running == nil {
		return errdefs.InvalidInputf("pod %s/%s: container %s does not run", t.Pod.Namespace, t.Pod.Name, t.Container)
	}
	return nil
}

// StateOf returns the status of a container of a pod; nil if the pod has none.
func StateOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}

// NotMade marks the error of a create that has certainly made nothing, so the next create need not look for an instance.
func NotMade(err error) error {
	if err == nil {
		return nil
	}
	return &notMade{err}
}

type notMade struct{ error }

// Unwrap lets errors.As see the kinds of the error.
func (e *notMade) Unwrap() error { return e.error }

// AlreadyMade marks the error of a create that the service refuses because it has made the instance, from another request: a token or a Secret in
// it has changed since. The instance is then found.
func AlreadyMade(err error) error { return &alreadyMade{err} }

type alreadyMade struct{ error }

// Unwrap lets errors.As see the kinds of the error.
func (e *alreadyMade) Unwrap() error { return e.error }

// madeNothing reports whether an error of Create says that there is no instance from it.
func madeNothing(err error) bool {
	var not *notMade
	return errors.As(err, &not) || errdefs.IsInvalidInput(err)
}

func isAlreadyMade(err error) bool {
	var already *alreadyMade
	return errors.As(err, &already)
}
