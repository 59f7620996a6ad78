// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// managedBy is the label of pods that are made from ShadowPods.
const managedBy, shadowPod = "liqo.io/managed-by", "shadowpod"

// shadows is a controller that creates the pods of ShadowPods, like Liqo's controllers. A pod has the name of its
// ShadowPod, gets changes of its labels and annotations, and is recreated unless it has ended for good. The
// controller uses watch caches, which may be late.
type shadows struct {
	api     *testapi.API
	objects dynamic.Interface
	known   cache.GenericLister
	pods    corev1listers.PodLister
	real    bool // Liqo's own controllers make the pods
}

// installed ensures that the CRDs of Liqo are created only once.
var installed sync.Map

// install creates the CRDs of Liqo that this provider uses.
func install(t *testing.T, api *testapi.API) {
	t.Helper()
	once, _ := installed.LoadOrStore(api, sync.OnceFunc(func() {
		for _, one := range definitions(t) {
			apply(t, api, one)
		}
		client := dynamic.NewForConfigOrDie(api.Config)
		u := remotetest.NewHome(t, "")
		for _, resource := range []string{"shadowpods", "namespacemaps"} {
			u.Until(resource+" are served", func() (bool, string) {
				_, err := client.Resource(shadowPods.Resource.GroupVersion().WithResource(resource)).List(t.Context(), metav1.ListOptions{})
				return err == nil, errText(err)
			})
		}
	}))
	once.(func())()
}

// definitions returns the CRDs of Liqo.
func definitions(t *testing.T) []string {
	t.Helper()
	if realDir() != "" {
		return realDefinitions(t)
	}
	text, err := os.ReadFile("testdata/crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n---\n")
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// apply creates the CRD of a kind, unless it exists.
func apply(t *testing.T, api *testapi.API, text string) {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	err = api.Client.Discovery().RESTClient().Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func startShadows(t *testing.T, api *testapi.API) shadows {
	t.Helper()
	install(t, api)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s := shadows{api: api, objects: dynamic.NewForConfigOrDie(api.Config), real: realDir() != ""}
	if s.real {
		cancel()
		startReal(t, api)
		return s
	}
	objects := dynamicinformer.NewDynamicSharedInformerFactory(s.objects, 0)
	pods := informers.NewSharedInformerFactoryWithOptions(api.Client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = labels.Set{managedBy: shadowPod}.String()
	}))
	s.known, s.pods = objects.ForResource(shadowPods.Resource).Lister(), pods.Core().V1().Pods().Lister()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](5*time.Millisecond, time.Second))
	handler := func(events cache.ResourceEventHandlerFuncs, informer cache.SharedIndexInformer) {
		if _, err := informer.AddEventHandler(events); err != nil {
			t.Fatal(err)
		}
	}
	mark := func(o any) {
		if name, err := cache.DeletionHandlingObjectToName(o); err == nil {
			queue.Add(name)
		}
	}
	handler(cache.ResourceEventHandlerFuncs{AddFunc: mark, UpdateFunc: func(_, o any) { mark(o) }, DeleteFunc: mark}, objects.ForResource(shadowPods.Resource).Informer())
	handler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, o any) { mark(o) }, DeleteFunc: mark}, pods.Core().V1().Pods().Informer())
	objects.Start(ctx.Done())
	pods.StartWithContext(ctx)
	objects.WaitForCacheSync(ctx.Done())
	pods.WaitForCacheSync(ctx.Done())
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				name, end := queue.Get()
				if end {
					return
				}
				if err := s.reconcile(ctx, name); err != nil {
					queue.AddRateLimited(name)
				} else {
					queue.Forget(name)
				}
				queue.Done(name)
			}
		})
	}
	t.Cleanup(func() {
		queue.ShutDown()
		cancel()
		workers.Wait()
		objects.Shutdown()
		pods.Shutdown()
	})
	return s
}

func (s shadows) of(namespace string) dynamic.ResourceInterface {
	return s.objects.Resource(shadowPods.Resource).Namespace(namespace)
}

// reconcile does the work of Liqo's controller for one ShadowPod.
func (s shadows) reconcile(ctx context.Context, name cache.ObjectName) error {
	o, err := s.known.ByNamespace(name.Namespace).Get(name.Name)
	if err != nil {
		return nil // it is gone, and the garbage collector removes the pod
	}
	shadow := o.(*unstructured.Unstructured).DeepCopy()
	spec := corev1.PodSpec{}
	from, _, _ := unstructured.NestedMap(shadow.Object, "spec", "pod")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from, &spec); err != nil {
		return err
	}
	phase, _, _ := unstructured.NestedString(shadow.Object, "status", "phase")
	succeeded, failed := phase == string(corev1.PodSucceeded), phase == string(corev1.PodFailed)
	if spec.RestartPolicy == corev1.RestartPolicyNever && (succeeded || failed) || spec.RestartPolicy == corev1.RestartPolicyOnFailure && succeeded {
		return nil
	}
	with := labels.Merge(shadow.GetLabels(), labels.Set{managedBy: shadowPod})
	pod, err := s.pods.Pods(name.Namespace).Get(name.Name)
	if err == nil {
		return s.follow(ctx, shadow, pod, with)
	}
	if with[labelOrigin] == "" {
		return nil
	}
	_, err = s.api.Client.CoreV1().Pods(name.Namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name, Labels: with, Annotations: shadow.GetAnnotations(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: shadow.GetAPIVersion(), Kind: shadow.GetKind(), Name: name.Name, UID: shadow.GetUID(),
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		}, Spec: spec,
	}, metav1.CreateOptions{})
	return err
}

// follow copies labels and annotations to the pod, and the pod's phase to the ShadowPod.
func (s shadows) follow(ctx context.Context, shadow *unstructured.Unstructured, pod *corev1.Pod, with map[string]string) error {
	apply := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	apply.SetNamespace(pod.Namespace)
	apply.SetName(pod.Name)
	apply.SetLabels(with)
	apply.SetAnnotations(shadow.GetAnnotations())
	text, err := apply.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = s.api.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: "shadow-pod", Force: ptr.To(true)})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(shadow.Object, string(pod.Status.Phase), "status", "phase"); err != nil {
		return err
	}
	_, err = s.of(shadow.GetNamespace()).UpdateStatus(ctx, shadow, metav1.UpdateOptions{})
	return err
}
