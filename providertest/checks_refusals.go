// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	corev1informers "k8s.io/client-go/informers/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/memapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

func (c *C) requireDeclaration() capability.Declaration {
	d, ok := c.openProvider().provider.(capability.Declarer)
	if !ok {
		c.Skipf("the provider declares nothing: it gets every pod")
	}
	return d.Capabilities()
}

var refusals = []Check{
	{
		Name: "refusals/fields", Why: "a pod that asks for what is not there must say which field, and not run without it",
		Run: func(c *C) {
			declared := c.requireDeclaration()
			api := memapi.New()
			backend := &refusing{declared: declared}
			c.runController(api, backend)
			want := map[string]string{}
			for _, f := range capability.Features() {
				ask := asks[f]
				if declared.Has(f) || ask == nil || f == capability.EphemeralContainers { // ephemeral containers have their own statuses
					continue
				}
				name := strings.ToLower(string(f))
				pod := c.newPod(name, program.Program{})
				ask(&pod.Spec)
				if len(declared.Check(pod)) == 0 { // the pod runs without the feature, and the node records an event
					continue
				}
				needs := capability.Needs(pod)
				i := slices.IndexFunc(needs, func(n capability.Need) bool { return n.Feature == f })
				if i < 0 {
					c.Errorf("the pod that is to ask for %s asks for %v", f, needs)
					continue
				}
				want[name] = needs[i].Path
				api.Create(pod)
			}
			c.awaitCondition("every pod to be refused with the path of its field", func() (bool, string) {
				for name, path := range want {
					if s := api.Pod(c.ns, name).Status; s.Reason != "UnsupportedPodSpec" || !strings.Contains(s.Message, path+": ") {
						return false, fmt.Sprintf("pod %s is %s %q, want the field %s", name, s.Reason, s.Message, path)
					}
				}
				return true, ""
			})
			if got := backend.givenNames(); len(got) > 0 {
				c.Errorf("the provider was given %v, which ask for what it does not declare", got)
			}
		},
	},
	{
		Name: "refusals/unenforced", Why: "a pod that may run without what the backend does not have must run, and not fail at the backend for that",
		Run: func(c *C) {
			declared := c.requireDeclaration()
			pod := c.newPod("unenforced", stayingProgram())
			for _, f := range declared.Accepted() {
				if ask := asks[f]; ask != nil {
					ask(&pod.Spec)
				}
			}
			if len(declared.Unenforced(pod)) == 0 {
				c.Skipf("the provider accepts nothing that it does not have")
			}
			declared.LeaveOut(pod) // as the node does
			c.startPod(pod)
		},
	},
	{
		Name: "refusals/stable", Why: "pods are admitted by what is declared when the node starts; a declaration that changes refuses what it promised",
		Run: func(c *C) {
			before := c.requireDeclaration()
			c.startPod(c.newPod("stable", stayingProgram()))
			c.reopenProvider()
			after := c.requireDeclaration()
			for _, f := range capability.Features() {
				if before.Has(f) != after.Has(f) {
					c.Errorf("%s was declared: %t, and after a restart: %t", f, before.Has(f), after.Has(f))
				}
			}
		},
	},
	{
		Name: "refusals/reasons", Why: "users read why a node does not take their pod",
		Run: func(c *C) {
			declared := c.requireDeclaration()
			for _, f := range capability.Features() {
				if ask := asks[f]; ask != nil && !declared.Has(f) {
					pod := c.newPod("reasons", program.Program{})
					ask(&pod.Spec)
					for _, u := range declared.Check(pod) {
						if u.Why == "" || u.Path == "" {
							c.Errorf("%s is refused with the path %q and the reason %q, want both", f, u.Path, u.Why)
						}
					}
				}
			}
		},
	},
}

// refusing is a provider with only the declaration of the real one. It has no pods, so that the controller of this check cannot affect
// other pods at the backend.
type refusing struct {
	declared capability.Declaration
	mu       sync.Mutex
	given    []string // guarded by mu
}

// Capabilities returns the declaration of the provider.
func (r *refusing) Capabilities() capability.Declaration { return r.declared }

func (r *refusing) givenNames() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.given)
}

// CreatePod records pods that should have been refused.
func (r *refusing) CreatePod(_ context.Context, pod *corev1.Pod) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given = append(r.given, pod.Name)
	return nil
}

// UpdatePod does nothing.
func (r *refusing) UpdatePod(context.Context, *corev1.Pod) error { return nil }

// DeletePod has nothing to delete.
func (r *refusing) DeletePod(_ context.Context, pod *corev1.Pod) error {
	return errdefs.NotFoundf("pod %s is not there", pod.Name)
}

// GetPod has no pods.
func (r *refusing) GetPod(_ context.Context, _, name string) (*corev1.Pod, error) {
	return nil, errdefs.NotFoundf("pod %s is not there", name)
}

// GetPodStatus has no pods.
func (r *refusing) GetPodStatus(_ context.Context, _, name string) (*corev1.PodStatus, error) {
	return nil, errdefs.NotFoundf("pod %s is not there", name)
}

// GetPods has no pods.
func (r *refusing) GetPods(context.Context) ([]*corev1.Pod, error) { return nil, nil }

// runController runs a pod controller until the check ends.
func (c *C) runController(api *memapi.API, provider node.PodLifecycleHandler) {
	pods := api.Informer(time.Minute)
	maps, secrets, services := emptyInformer[*corev1.ConfigMap](&corev1.ConfigMapList{}), emptyInformer[*corev1.Secret](&corev1.SecretList{}), emptyInformer[*corev1.Service](&corev1.ServiceList{})
	ctl, err := node.NewPodController(node.PodControllerConfig{
		PodClient: api, PodInformer: pods, EventRecorder: events{c}, Provider: provider,
		ConfigMapInformer: configMaps{maps}, SecretInformer: secretsOf{secrets}, ServiceInformer: servicesOf{services},
	})
	if err != nil {
		c.Fatalf("make a pod controller: %v", err)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	var wait sync.WaitGroup
	c.addCleanup(func() { cancel(); wait.Wait() })
	for _, informer := range []cache.SharedIndexInformer{pods.Informer(), maps, secrets, services} {
		wait.Go(func() { informer.RunWithContext(ctx) })
	}
	wait.Go(func() {
		if err := ctl.Run(ctx, 4); err != nil && ctx.Err() == nil {
			c.Errorf("the pod controller ended: %v", err)
		}
	})
	select {
	case <-ctl.Ready():
	case <-c.ctx.Done():
		c.Fatalf("the pod controller is not ready: %v", c.ctx.Err())
	}
}

// emptyInformer returns an informer without objects.
func emptyInformer[T runtime.Object](list runtime.Object) cache.SharedIndexInformer {
	var kind T
	return cache.NewSharedIndexInformer(listsFirst{&cache.ListWatch{
		ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return list, nil },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}}, kind, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// listsFirst is a source that cannot stream its list.
type listsFirst struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported tells the reflector to list first.
func (listsFirst) IsWatchListSemanticsUnSupported() bool { return true }

type configMaps struct{ i cache.SharedIndexInformer }

// Informer returns the informer.
func (m configMaps) Informer() cache.SharedIndexInformer { return m.i }

// Lister returns an empty lister.
func (m configMaps) Lister() corev1listers.ConfigMapLister {
	return corev1listers.NewConfigMapLister(m.i.GetIndexer())
}

type secretsOf struct{ i cache.SharedIndexInformer }

// Informer returns the informer.
func (m secretsOf) Informer() cache.SharedIndexInformer { return m.i }

// Lister returns a lister of nothing.
func (m secretsOf) Lister() corev1listers.SecretLister {
	return corev1listers.NewSecretLister(m.i.GetIndexer())
}

type servicesOf struct{ i cache.SharedIndexInformer }

// Informer returns the informer.
func (m servicesOf) Informer() cache.SharedIndexInformer { return m.i }

// Lister returns a lister of nothing.
func (m servicesOf) Lister() corev1listers.ServiceLister {
	return corev1listers.NewServiceLister(m.i.GetIndexer())
}

var (
	_ corev1informers.ConfigMapInformer = configMaps{}
	_ corev1informers.SecretInformer    = secretsOf{}
	_ corev1informers.ServiceInformer   = servicesOf{}
)
