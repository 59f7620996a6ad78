// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

const (
	// aloneAtOnce is the maximum number of requests for single pods in one round. With one round a second, these are 1200 requests a
	// minute, however many pods there are.
	aloneAtOnce = 20
	// forgetAtOnce is the number of pods that the server is told to forget before each round.
	forgetAtOnce = 4
	// afterAbsent is how long a delete waits for states after the server has answered with 404.
	afterAbsent = 2 * time.Second
)

// instance is a pod as the server reports it.
type instance struct {
	pod    identity.Pod
	said   wire.PodStatus
	ended  bool
	probes bool // the plugin reports the readiness of containers
	kept   bool // the server has no answer: the status of the cluster stays
}

// driver implements service.Driver for an interLink API server.
type driver struct {
	config Config
	client *client
	pods   corev1listers.PodLister       // of this node; nil: unknown
	known  func() []poll.Known[instance] // pods reported by the server
	offer  func(corev1.ResourceList)     // of the provider

	mu     sync.Mutex
	taints []corev1.Taint     // guarded by mu; the last taints of the plugin
	wrong  []string           // guarded by mu; the wrong values in its last report
	wanted map[types.UID]bool // guarded by mu; pods of the cluster that the server may have, but does not report
	began  bool               // guarded by mu, and changed by List alone; List has requested all pods of the cluster

	listing sync.Mutex // held during a request for all states
	asker   asker      // guarded by listing
	rotated types.UID  // guarded by listing; the last pod that the server was asked to forget
	stuck   bool       // guarded by listing; the server does not forget
}

// List implements service.Driver. It requests the states of the pods that can still change and of the pods that the server lacks. The
// first call requests all pods of the cluster.
func (d *driver) List(ctx context.Context) ([]instance, error) {
	d.listing.Lock()
	defer d.listing.Unlock()
	known, unanswered := map[types.UID]poll.Known[instance]{}, poll.Unanswered{}
	var pods []*corev1.Pod
	for _, k := range d.known() {
		known[k.Pod.UID] = k
		if k.Stopping || !terminal(k.Pod.Status.Phase) {
			pods = append(pods, k.Pod)
		} else {
			unanswered[k.Pod.UID] = false // the status of this pod no longer changes
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	forgotten := d.forget(ctx, pods, known)
	lacked, err := d.lacked(known) // if the plugin repeats this answer, the answer must include these pods
	if err != nil {
		return nil, err
	}
	pods = append(pods, lacked...)
	most := aloneAtOnce
	if !d.began {
		most = len(pods) // their states are not known yet
	}
	said, err := d.asker.ask(ctx, pods, known, forgotten, most)
	if err != nil {
		return nil, err
	}
	var all []instance
	for _, pod := range pods {
		s, has := said.has[pod.UID]
		k, isKnown := known[pod.UID]
		switch {
		case has:
			s.JobID = cmp.Or(s.JobID, k.Instance.said.JobID, pod.Annotations[wire.AnnotationJob]) // not every plugin repeats the ID of the job
			all = append(all, d.instance(pod, s))
		case isKnown && !said.lacks[pod.UID]:
			unanswered[pod.UID] = said.fails[pod.UID]
		case isKnown:
		case pod.Status.Phase == corev1.PodRunning && said.fails[pod.UID]:
			all = append(all, instance{pod: identity.Of(pod), kept: true})
		case !terminal(pod.Status.Phase):
			d.want(pod)
		}
	}
	d.mu.Lock()
	d.began = true
	d.mu.Unlock()
	if len(unanswered) > 0 {
		return all, unanswered
	}
	return all, nil
}

// lacked returns the pods of the cluster that the server may have but does not report. The first call returns all of them; later calls
// return pods that ran and pods in wanted.
func (d *driver) lacked(known map[types.UID]poll.Known[instance]) (lacked []*corev1.Pod, err error) {
	if d.pods == nil {
		return nil, nil
	}
	pods, err := d.pods.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	wanted := map[types.UID]bool{}
	for _, pod := range pods {
		if _, is := known[pod.UID]; is {
			continue
		}
		ran := (pod.Status.StartTime != nil || pod.Status.Phase == corev1.PodRunning) && pod.DeletionTimestamp == nil
		wanted[pod.UID] = d.wanted[pod.UID]
		if !d.began || !terminal(pod.Status.Phase) && (ran || wanted[pod.UID]) {
			lacked = append(lacked, pod)
		}
	}
	d.wanted = wanted
	return lacked, nil
}

// want marks a pod that the server may have, so that the next requests include this pod.
func (d *driver) want(pod *corev1.Pod) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted[pod.UID] = true
}

// Gone implements service.Mourner.
func (d *driver) Gone(pod *corev1.Pod) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.wanted, pod.UID)
}

// forget tells the server to drop its memory of some pods and returns their UIDs. Where the plugin has no
// answer, the server answers from memory, so a pod lost by the plugin would keep its old state forever.
// Stopping pods come first; the other pods take turns.
func (d *driver) forget(ctx context.Context, pods []*corev1.Pod, known map[types.UID]poll.Known[instance]) (forgotten []types.UID) {
	after := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.UID > d.rotated })
	for i := range pods {
		p := pods[(max(after, 0)+i)%len(pods)]
		if i == 0 {
			d.rotated = p.UID
		}
		if len(forgotten) < forgetAtOnce && (i == 0 || known[p.UID].Stopping) {
			forgotten = append(forgotten, p.UID)
		}
	}
	for _, uid := range forgotten {
		if err := d.client.forget(ctx, string(uid)); err != nil { // the states of other pods are still valid
			if !d.stuck {
				log.G(ctx).WithError(err).Warn("the interLink API server does not forget pods; a pod that its plugin has lost is reported in its last state")
			}
			d.stuck = true
			return forgotten
		}
		d.stuck = false
	}
	return forgotten
}

// Find implements service.Driver. The request also names the pods that recent answers lack. interLink's Slurm
// plugin repeats its last answer for ten seconds, whatever the request, and these pods would be missing for as
// long.
func (d *driver) Find(ctx context.Context, pod *corev1.Pod) (instance, bool, error) {
	pods, known := []*corev1.Pod{pod}, map[types.UID]poll.Known[instance]{}
	for _, k := range d.known() {
		known[k.Pod.UID] = k
		if k.Missing > 0 && k.Pod.UID != pod.UID {
			pods = append(pods, k.Pod)
		}
	}
	lacked, err := d.lacked(known)
	if err != nil {
		return instance{}, false, err
	}
	pods = append(pods, slices.DeleteFunc(lacked, func(p *corev1.Pod) bool { return p.UID == pod.UID })...)
	s, has, err := d.client.find(ctx, pods)
	if !has || err != nil {
		return instance{}, false, err
	}
	s.JobID = cmp.Or(s.JobID, pod.Annotations[wire.AnnotationJob])
	return d.instance(pod, s), true, nil
}

// Refuse implements service.Refuser.
func (d *driver) Refuse(pod *corev1.Pod) error { return offloaded(pod) }

// Create implements service.Driver.
func (d *driver) Create(ctx context.Context, in *service.Inputs) (instance, error) {
	has, err := objectsOf(ctx, in)
	if err != nil {
		return instance{}, service.NotMade(err)
	}
	made, err := d.client.create(ctx, request(in, has, d.config))
	if doubtful(err) {
		d.want(in.Pod)
	} else if err != nil {
		err = service.NotMade(err)
	}
	return d.instance(in.Pod, wire.PodStatus{UID: string(in.Pod.UID), JobID: words(made.JobID)}), err
}

// objectsOf reads the ConfigMaps and Secrets of volumes. The protocol sends these objects whole.
func objectsOf(ctx context.Context, in *service.Inputs) (objects, error) {
	has := objects{configMaps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{}}
	for i := range in.Pod.Spec.Volumes {
		var optional *bool
		var err error
		switch v := &in.Pod.Spec.Volumes[i]; {
		case v.ConfigMap != nil:
			optional = v.ConfigMap.Optional
			has.configMaps[v.ConfigMap.Name], err = in.Objects.ConfigMap(ctx, in.Pod, v.ConfigMap.Name)
		case v.Secret != nil:
			optional = v.Secret.Optional
			has.secrets[v.Secret.SecretName], err = in.Objects.Secret(ctx, in.Pod, v.Secret.SecretName)
		}
		if err != nil && !(ptr.Deref(optional, false) && apierrors.IsNotFound(err)) {
			return has, err
		}
	}
	return has, nil
}

// Stop implements service.Driver. A proxy answers 404, too, so only the states show whether the pod is gone.
func (d *driver) Stop(ctx context.Context, pod *corev1.Pod, _ instance) error {
	err := d.client.remove(ctx, deletion(pod))
	if absent(err) {
		return errdefs.RetryAfter(errdefs.AsNotFound(err), afterAbsent)
	}
	return err
}

func (d *driver) instance(pod *corev1.Pod, said wire.PodStatus) instance {
	return instance{pod: identity.Of(pod), said: said, ended: ended(pod, said), probes: d.client.probes.Load()}
}

// Identify implements service.Driver. The server knows pods by their UID, so each has one instance.
func (d *driver) Identify(i instance) (poll.Identity, bool) {
	return poll.Identity{Namespace: i.pod.Namespace, Name: i.pod.Name, UID: i.pod.UID, ID: string(i.pod.UID)}, i.pod.UID != ""
}

// Status implements service.Driver.
func (d *driver) Status(pod *corev1.Pod, i instance) corev1.PodStatus {
	if i.kept {
		return pod.Status
	}
	return statusOf(pod, i.said, i.probes)
}

// Ended implements service.Ender.
func (d *driver) Ended(i instance) bool { return i.ended }

// Annotations implements service.Annotator.
func (d *driver) Annotations(i instance) map[string]string {
	if i.said.JobID == "" {
		return nil
	}
	return map[string]string{wire.AnnotationJob: i.said.JobID}
}

// Close implements service.Closer.
func (d *driver) Close() { d.client.http.CloseIdleConnections() }

func terminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// withCA replaces the authority of the cluster by the authority of the address that jobs use.
type withCA struct {
	node.PodObjects
	ca string
}

// ConfigMap implements podspec.Objects.
func (w withCA) ConfigMap(ctx context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	m, err := w.PodObjects.ConfigMap(ctx, pod, name)
	if err != nil || w.ca == "" || name != kubeRootCA {
		return m, err
	}
	m = m.DeepCopy()
	if m.Data == nil {
		m.Data = map[string]string{}
	}
	m.Data["ca.crt"] = w.ca
	return m, nil
}
