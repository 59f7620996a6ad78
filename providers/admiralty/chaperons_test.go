// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// missingSince is the annotation in which the controller records that a pod is gone.
const missingSince = prefix + "pod-missing-since"

// chaperons does the work of an agent of Admiralty in a target cluster: it makes the pod of each PodChaperon
// once, and copies the pod's status.
type chaperons struct {
	api     *testapi.API
	objects dynamic.Interface
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	pods    cache.SharedIndexInformer
}

// startChaperons runs the controller until stop is called, or the test ends.
func startChaperons(t *testing.T, api *testapi.API) (stop func()) {
	t.Helper()
	objects, err := dynamic.NewForConfig(api.Config)
	if err != nil {
		t.Fatal(err)
	}
	defineChaperons(t, objects)
	c := &chaperons{api: api, objects: objects, queue: workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](10*time.Millisecond, time.Second))}
	ours := func(o *metav1.ListOptions) { o.LabelSelector = remotecluster.LabelUID }
	pods := informers.NewSharedInformerFactoryWithOptions(api.Client, 0, informers.WithTweakListOptions(ours))
	all := dynamicinformer.NewDynamicSharedInformerFactory(objects, 0)
	c.pods = pods.Core().V1().Pods().Informer()
	enqueue := func(o any) {
		if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		m := o.(metav1.Object)
		c.queue.Add(types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()})
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, o any) { enqueue(o) }, DeleteFunc: enqueue}
	for _, informer := range []cache.SharedIndexInformer{c.pods, all.ForResource(podChaperon.Resource).Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	pods.Start(ctx.Done())
	all.Start(ctx.Done())
	done := make(chan struct{})
	go func() {
		defer close(done)
		pods.WaitForCacheSync(ctx.Done())
		for c.next(ctx) {
		}
	}()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			c.queue.ShutDown()
			<-done
			pods.Shutdown()
			all.Shutdown()
		}
	}
	t.Cleanup(stop)
	return stop
}

func (c *chaperons) next(ctx context.Context) bool {
	key, stop := c.queue.Get()
	if stop {
		return false
	}
	defer c.queue.Done(key)
	if err := c.sync(ctx, key); err != nil && ctx.Err() == nil {
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

func (c *chaperons) sync(ctx context.Context, at types.NamespacedName) error {
	api := c.objects.Resource(podChaperon.Resource).Namespace(at.Namespace)
	u, err := api.Get(ctx, at.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	var chaperon struct {
		Spec   corev1.PodSpec   `json:"spec"`
		Status corev1.PodStatus `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &chaperon); err != nil {
		return err
	}
	pod, err := c.api.Client.CoreV1().Pods(at.Namespace).Get(ctx, at.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && chaperon.Status.Phase == "":
		owner := metav1.NewControllerRef(u, podChaperon.Resource.GroupVersion().WithKind(podChaperon.Kind))
		pod, err = c.api.Client.CoreV1().Pods(at.Namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: at.Namespace, Name: at.Name, Labels: u.GetLabels(), Annotations: u.GetAnnotations(), OwnerReferences: []metav1.OwnerReference{*owner},
		}, Spec: chaperon.Spec}, metav1.CreateOptions{})
	case apierrors.IsNotFound(err) && u.GetAnnotations()[missingSince] == "":
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, missingSince, time.Now().UTC().Format(time.RFC3339))
		_, err = api.Patch(ctx, at.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	case apierrors.IsNotFound(err):
		return nil
	}
	if err != nil || reflect.DeepEqual(pod.Status, chaperon.Status) {
		return err
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod.Status)
	if err != nil {
		return err
	}
	u.Object["status"] = status
	_, err = api.UpdateStatus(ctx, u, metav1.UpdateOptions{})
	return err
}

// defineChaperons defines the kind, and waits until the kind is served.
func defineChaperons(t *testing.T, objects dynamic.Interface) {
	t.Helper()
	text, err := os.ReadFile("testdata/podchaperon.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &crd.Object); err != nil {
		t.Fatal(err)
	}
	crds := objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	(remotetest.NewHome(t, "")).Until("PodChaperons are served", func() (bool, string) {
		_, err := objects.Resource(podChaperon.Resource).List(t.Context(), metav1.ListOptions{})
		return err == nil, fmt.Sprint(err)
	})
}
