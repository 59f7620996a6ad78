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

// Driver has the requests of one service, and converts its responses for the kit. T is an instance as the service returns it. Methods must
// be safe for concurrent use; Identify, Status and Ended are pure functions. Errors do not repeat the name of the pod.
type Driver[T any] interface {
	// List returns every instance of this node. It returns a complete list or an error; see poll.Config.
	List(ctx context.Context) ([]T, error)
	// Create creates the instance of a pod, and returns the instance from the response. After an error, an instance may exist unless the
	// error is of the kind invalid-input or from NotMade. AlreadyMade: the instance exists.
	Create(ctx context.Context, in *Inputs) (T, error)
	// Find returns the instance of a pod, by its UID, name or tags, with a request for only this instance. It returns false if the service
	// shows no instance.
	Find(ctx context.Context, pod *corev1.Pod) (T, bool, error)
	// Stop asks the service to stop the instance of a pod with its grace period, and may return before the
	// instance has stopped. The kit calls Stop again until the instance is gone. An error of the kind not-found
	// means that the service does not have the instance; lists must confirm this. If the error also has a time
	// for the next try, it is reported, and the kit asks for the stop again.
	Stop(ctx context.Context, pod *corev1.Pod, instance T) error
	// Identify returns the identity of the pod of an instance. It returns false if the instance belongs to no pod of this node.
	Identify(instance T) (poll.Identity, bool)
	// Status converts an instance to the status of its pod. It is called with a lock held. The pod has the last
	// reported status, also after a restart if the node knows the pod by then. For a service that shows only one
	// run of a container, the driver takes lastState from there.
	Status(pod *corev1.Pod, instance T) corev1.PodStatus
}

// The optional abilities of a driver. New finds them by type assertion.
type (
	// Ender is a driver with ended instances in its lists. Without it, a stopped pod exists until lists lack it.
	Ender[T any] interface{ Ended(instance T) bool }
	// Annotator is a driver with annotations from instances for their pods.
	Annotator[T any] interface {
		Annotations(instance T) map[string]string
	}
	// Refuser is a driver with more reasons to refuse pods than its declaration. Refuse is a pure function, and
	// is called before the kit reads the other objects of the pod. Its errors are of the kind invalid-input.
	Refuser interface{ Refuse(pod *corev1.Pod) error }
	// ChangeLister is a driver with requests for changes only. Without it, every round is a list.
	ChangeLister[T any] interface {
		Changed(ctx context.Context, since time.Time) ([]T, error)
	}
	// Updater is a driver that changes an instance when its pod changes. Without it, the kit refuses a change of
	// an image, and sends no other change to the service.
	Updater[T any] interface {
		Update(ctx context.Context, pod *corev1.Pod, instance T) error
	}
	// LogReader is a driver with logs. As with exec and attach, errors do not repeat the name of the container.
	// If the service does not keep the log of the previous run, a request for it is an error of the kind
	// invalid-input.
	LogReader[T any] interface {
		Logs(ctx context.Context, of Target[T], opts api.ContainerLogOpts) (io.ReadCloser, error)
	}
	// Executor is a driver with exec. The Exec of a Prober calls Begun when the command begins.
	Executor[T any] interface {
		Exec(ctx context.Context, in Target[T], command []string, attach api.AttachIO) error
	}
	// Prober is a driver of a service without probes: this process runs them. Commands use Exec of the driver; network probes use the
	// network of this process. A driver does not return network probes if this process cannot reach the addresses of pods. Status has
	// Started and Ready of containers as if the probes of Lacking did not exist, and no conditions from them.
	Prober[T any] interface {
		// Lacking returns the probes of a container that the service lacks, and nil for each other probe. It is
		// a pure function. If a startup probe is returned, the liveness probe must be returned as well: the
		// service would not wait with it.
		Lacking(pod *corev1.Pod, c *corev1.Container) Probes
		// End asks the service to end the instance of a pod because a container has failed a startup or liveness
		// probe, and may return before the instance has ended. The kit calls End if the driver is no Restarter,
		// or if the restart policy forbids a restart. The reason is text.
		End(ctx context.Context, of Target[T], reason string) error
	}
	// Restarter is a Prober of a service with restarts of containers. If the service cannot restart one
	// container alone, it restarts others of the pod too. Restart may return before the restart has happened.
	// After an error, the service may still restart the container, unless the error is of the kind invalid-input
	// or not-found, says when to try again, or is from NotMade.
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
	// Measurer is a driver that can measure the resource use of pods.
	Measurer[T any] interface {
		Stats(ctx context.Context, of []Target[T]) ([]statsv1alpha1.PodStats, error)
	}
	// Renewer is a driver that replaces files of an instance. Renew is called before a token ends, with only the
	// tokens in Inputs.Files.
	Renewer[T any] interface {
		Renew(ctx context.Context, in *Inputs, instance T) error
	}
	// Starter is a driver of a service without restarts of containers, or with other restarts than in the API.
	// The kit then starts it again by the restart policy of the pod, with the back-off of a kubelet. The kit
	// also counts the runs, and reports how the previous run ended. Start starts the container of an ended
	// instance, and returns the instance as the service shows it after the start. The instance is of the new
	// run, and may already have ended. The kit starts nothing for instances with several containers. After a
	// restart of the process, the count continues from the status in the cluster, or from Status. A Starter that
	// is also a Prober is a Restarter, and its Restart lets the container end.
	Starter[T any] interface {
		Start(ctx context.Context, pod *corev1.Pod, instance T) (T, error)
	}
	// Remover is a driver whose instances leave things behind, such as files. The driver registers them with Provider.Leave when the
	// instance no longer needs them. It may also name them in Stop and Gone, if Remove fails as long as the instance needs them. The kit
	// calls Remove until it succeeds or returns an error of the kind not-found: again after 2 s, then with growing delays of up to 5 min,
	// or when the error says. The kit logs the first failure. Names do not survive a restart: if the service lists the things left behind,
	// the driver names them again in Work.
	Remover interface {
		Remove(ctx context.Context, name string) error
	}
	// Mourner is a driver that is notified when a pod has nothing at the service: the create was refused as invalid-input, or the deletion
	// found nothing. Gone is not called after a NotMade create, because the kit asks for it again.
	Mourner interface{ Gone(pod *corev1.Pod) }
	// Worker is a driver with background work besides the lists, such as a stream of events for Provider.Cache.
	Worker interface{ Work(ctx context.Context) }
	// Follower is a driver of a service that pushes changes. Follow replaces the rounds. It gives each change to
	// Take and each list to TakeAll of Provider.Cache, and reports by Fails whether the changes arrive.
	Follower interface{ Follow(ctx context.Context) }
	// Closer is a driver with resources to close when the provider has stopped.
	Closer interface{ Close() }
	// Pinger is a driver with its own health check of the service. Ping alone decides whether the node is Ready.
	// Without it, the lists decide, with no further request.
	Pinger interface {
		Ping(ctx context.Context) error
	}
	// NodeConfigurer is a driver that adds to the Node object. The object already has the capacity and the
	// conditions of a healthy node.
	NodeConfigurer interface {
		ConfigureNode(ctx context.Context, n *corev1.Node)
	}
	// NodeReporter is a driver of a node with changes at run time.
	NodeReporter interface {
		NotifyNodeStatus(ctx context.Context, report func(*corev1.Node))
	}
	// Examiner is a driver with a self-test for the command doctor. Without it, a Pinger must answer, or a list
	// must succeed.
	Examiner interface {
		Examine(ctx context.Context) error
	}
)

// Target is the pod of a request, with its instance. Container and State are set if the request is about one
// container.
type Target[T any] struct {
	Pod       *corev1.Pod // with the last known status; not to be changed
	Instance  T
	Container string
	State     *corev1.ContainerStatus // nil if unknown
}

// Probes are probes of a container.
type Probes struct{ Startup, Liveness, Readiness *corev1.Probe }

// LackingProbes returns the probes of a container that a service lacks if it has no startup probes, and only those
// liveness and readiness probes that own reports. Such a service does not wait for a startup probe, so this process
// makes the liveness probe beside one.
func LackingProbes(c *corev1.Container, own func(*corev1.Probe) bool) Probes {
	out := Probes{Startup: c.StartupProbe}
	if p := c.LivenessProbe; p != nil && (c.StartupProbe != nil || !own(p)) {
		out.Liveness = p
	}
	if p := c.ReadinessProbe; p != nil && !own(p) {
		out.Readiness = p
	}
	return out
}

// Has reports whether probe is one of p.
func (p Probes) Has(probe *corev1.Probe) bool {
	return probe != nil && (probe == p.Startup || probe == p.Liveness || probe == p.Readiness)
}

// isRunning returns an error if the container has no running process for a session.
func (t Target[T]) isRunning() error {
	if t.State == nil || t.State.State.Running == nil {
		return errdefs.InvalidInputf("pod %s/%s: container %s does not run", t.Pod.Namespace, t.Pod.Name, t.Container)
	}
	return nil
}

// StateOf returns the status of a container of a pod, or nil.
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

// NotMade marks the error of a create that has certainly created nothing, or of a restart that has certainly done nothing. After such a
// create, the next create need not search for an instance.
func NotMade(err error) error {
	if err == nil {
		return nil
	}
	return &notMade{err}
}

type notMade struct{ error }

// Unwrap makes the kinds of the error visible to errors.As.
func (e *notMade) Unwrap() error { return e.error }

// AlreadyMade marks the error of a create refused because another request has already made the instance: a token
// or a Secret in the request has changed since. The kit then finds the instance.
func AlreadyMade(err error) error { return &alreadyMade{err} }

type alreadyMade struct{ error }

// Unwrap makes the kinds of the error visible to errors.As.
func (e *alreadyMade) Unwrap() error { return e.error }

// madeNothing reports whether an error of Create or Restart guarantees that the request did nothing.
func madeNothing(err error) bool {
	var not *notMade
	return errors.As(err, &not) || errdefs.IsInvalidInput(err)
}

func isAlreadyMade(err error) bool {
	var already *alreadyMade
	return errors.As(err, &already)
}
