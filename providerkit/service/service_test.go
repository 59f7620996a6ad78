// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
)

var (
	_ nodeutil.Provider        = (*Provider[int])(nil)
	_ node.PodNotifier         = (*Provider[int])(nil)
	_ node.PodAuthority        = (*Provider[int])(nil)
	_ node.PodObjectsUser      = (*Provider[int])(nil)
	_ node.PodTokensUser       = (*Provider[int])(nil)
	_ node.PullCredentialsUser = (*Provider[int])(nil)
	_ node.BackgroundRunner    = (*Provider[int])(nil)
	_ node.NodeProvider        = (*Provider[int])(nil)
	_ capability.Declarer      = (*Provider[int])(nil)
)

// lag is the time until the cloud of these tests shows a new instance.
const lag = 20 * time.Second

var errLost = errors.New("the connection was reset")

// vm is an instance of the cloud.
type vm struct {
	id    string
	pod   identity.Pod
	made  time.Time
	ended bool
	over  bool // its containers have ended
}

// cloud is a service whose lists lag. It outlives providers.
type cloud struct {
	again  Again
	faults []func(c *cloud, in *Inputs) (vm, error) // of the next creates; nil is no fault

	mu                          sync.Mutex
	vms                         []vm
	made, creates, finds, lists int
	changed                     int  // instances that a second create has changed
	dark                        bool // lists and Find fail
	stop                        func(vm) error
}

// make makes an instance. For a repeated create it does what the service's Again says.
func (c *cloud) make(in *Inputs) vm {
	c.mu.Lock()
	defer c.mu.Unlock()
	pod := identity.Of(in.Pod)
	for _, v := range c.vms {
		if v.pod == pod && c.again != AgainMakesAnother {
			if c.again == AgainReplaces {
				c.changed++
			}
			return v
		}
	}
	c.made++
	v := vm{id: fmt.Sprint("vm-", c.made), pod: pod, made: time.Now()}
	c.vms = append(c.vms, v)
	return v
}

// shown returns the instances that the cloud shows by now.
func (c *cloud) shown() (out []vm, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dark {
		return nil, errLost
	}
	for _, v := range c.vms {
		if time.Since(v.made) >= lag {
			out = append(out, v)
		}
	}
	return out, nil
}

func (c *cloud) List(context.Context) ([]vm, error) {
	c.mu.Lock()
	c.lists++
	c.mu.Unlock()
	return c.shown()
}

func (c *cloud) Create(_ context.Context, in *Inputs) (vm, error) {
	c.mu.Lock()
	c.creates++
	var fault func(*cloud, *Inputs) (vm, error)
	if len(c.faults) > 0 {
		fault, c.faults = c.faults[0], c.faults[1:]
	}
	c.mu.Unlock()
	if fault != nil {
		return fault(c, in)
	}
	return c.make(in), nil
}

func (c *cloud) Find(_ context.Context, pod *corev1.Pod) (vm, bool, error) {
	c.mu.Lock()
	c.finds++
	c.mu.Unlock()
	all, err := c.shown()
	for _, v := range all {
		if v.pod == identity.Of(pod) {
			return v, true, nil
		}
	}
	return vm{}, false, err
}

func (c *cloud) Stop(_ context.Context, _ *corev1.Pod, v vm) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		return c.stop(v)
	}
	for i := range c.vms {
		if c.vms[i].id == v.id {
			c.vms = append(c.vms[:i], c.vms[i+1:]...)
			return nil
		}
	}
	return errdefs.NotFound("no such machine")
}

func (c *cloud) Identify(v vm) (poll.Identity, bool) {
	return poll.Identity{Namespace: v.pod.Namespace, Name: v.pod.Name, UID: v.pod.UID, ID: v.id, CreatedAt: v.made}, true
}

func (c *cloud) Status(pod *corev1.Pod, v vm) corev1.PodStatus {
	s := corev1.PodStatus{Phase: corev1.PodRunning}
	if v.over {
		s.Phase = corev1.PodSucceeded
	}
	for i := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: pod.Spec.Containers[i].Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	return s
}

func (c *cloud) Ended(v vm) bool { return v.ended }

// before loses a create before the cloud has it. after loses the answer. late makes the instance a while after
// the answer was lost. slow loses the answer after a long time.
func before(*cloud, *Inputs) (vm, error) { return vm{}, errLost }
func after(c *cloud, in *Inputs) (vm, error) {
	c.make(in)
	return vm{}, errLost
}
func late(c *cloud, in *Inputs) (vm, error) {
	time.AfterFunc(5*time.Second, func() { c.make(in) })
	return vm{}, errLost
}
func slow(c *cloud, in *Inputs) (vm, error) {
	time.Sleep(55 * time.Second) // in a bubble
	return after(c, in)
}
func refuse(*cloud, *Inputs) (vm, error) { return vm{}, NotMade(errors.New("no quota")) }
func invalid(*cloud, *Inputs) (vm, error) {
	return vm{}, errdefs.InvalidInput("the size is unknown")
}
func already(c *cloud, in *Inputs) (vm, error) {
	return vm{}, AlreadyMade(errors.New("the token has another request"))
}

// objects resolves nothing.
type objects struct{ node.PodObjects }

func (objects) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			c := pod.Spec.Containers[i].DeepCopy()
			for n := range c.Env {
				if c.Env[n].ValueFrom != nil {
					c.Env[n] = corev1.EnvVar{Name: c.Env[n].Name, Value: "a secret value"}
				}
			}
			return c, nil
		}
	}
	return nil, errors.New("no such container")
}

// home is a cluster whose node runs pods in a cloud.
type home struct {
	*testing.T
	cloud *cloud
	pods  cache.Indexer
	stops []func()
}

// bubble runs a test in fake time.
func bubble(t *testing.T, again Again, f func(t *testing.T, h *home)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &home{T: t, cloud: &cloud{again: again}, pods: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
		defer func() {
			for _, stop := range h.stops {
				stop()
			}
		}()
		f(t, h)
	})
}

// start runs a provider until stop is called. If driver is nil, the driver is the cloud itself.
func (h *home) start(driver Driver[vm], change ...func(*Config)) (p *Provider[vm], stop func()) {
	h.Helper()
	if driver == nil {
		driver = h.cloud
	}
	config := Config{
		Service: "Cloud", Owner: identity.Owner{Cluster: "home", Node: "vk"}, Capabilities: capability.All(), Again: h.cloud.again,
		Pods: corev1listers.NewPodLister(h.pods), SeenWithin: time.Minute,
	}
	for _, c := range change {
		c(&config)
	}
	p = New(config, driver)
	p.UsePodObjects(objects{})
	p.UsePodTokens(tokens{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.Context()))
	done := make(chan error, 1)
	go func() { done <- p.RunInBackground(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				h.Error(err)
			}
		})
	}
	h.stops = append(h.stops, stop)
	synctest.Wait()
	return p, stop
}

// pod returns a new pod of the cluster.
func (h *home) pod(name string) *corev1.Pod {
	h.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(time.Now())},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "one"}}},
	}
	if err := h.pods.Add(pod); err != nil {
		h.Fatal(err)
	}
	return pod
}

// create creates a pod as the node does: it retries until the create succeeds.
func (h *home) create(p *Provider[vm], pod *corev1.Pod) {
	h.Helper()
	for begun := time.Now(); ; {
		err := p.CreatePod(h.Context(), pod.DeepCopy())
		if err == nil {
			return
		}
		if time.Since(begun) > 5*time.Minute {
			h.Fatalf("after %s: %v", time.Since(begun), err)
		}
		wait, says := errdefs.RetryAfterOf(err)
		if !says {
			wait = time.Second
		}
		time.Sleep(wait)
	}
}

// delete deletes a pod as the node does: it repeats the call until the pod is gone.
func (h *home) delete(p *Provider[vm], pod *corev1.Pod) {
	h.Helper()
	for begun := time.Now(); time.Since(begun) < 5*time.Minute; {
		err := p.DeletePod(h.Context(), pod.DeepCopy())
		if errdefs.IsNotFound(err) {
			return
		}
		wait, says := errdefs.RetryAfterOf(err)
		if !says {
			wait = 5 * time.Second
		}
		time.Sleep(wait)
		if _, gone := p.GetPod(h.Context(), pod.Namespace, pod.Name); err == nil && errdefs.IsNotFound(gone) {
			return
		}
	}
	h.Fatal("the pod is not gone")
}

// count returns the number of instances that were made, and the number of existing instances.
func (c *cloud) count() (made, there int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made, len(c.vms)
}

// edit changes the cloud while a provider runs.
func (c *cloud) edit(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// number returns the value of a counter of the cloud.
func (c *cloud) number(n *int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *n
}
