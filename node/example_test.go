// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/memapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// This example runs the two controllers without package nodeutil, for programs with their own clients and informers. Package nodeutil does
// the same, and also serves kubectl logs and exec.
func Example() {
	_ = func(ctx context.Context, client kubernetes.Interface, provider node.PodLifecycleHandler, n *corev1.Node) error {
		// The pod informer sees only the pods of this node.
		pods := informers.NewSharedInformerFactoryWithOptions(client, time.Minute, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", n.Name).String()
		}))
		cluster := informers.NewSharedInformerFactory(client, time.Minute)
		events := record.NewBroadcaster()
		defer events.Shutdown()
		events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events(corev1.NamespaceAll)})

		podController, err := node.NewPodController(node.PodControllerConfig{
			PodClient: client.CoreV1(), PodInformer: pods.Core().V1().Pods(), Provider: provider,
			EventRecorder:     events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: n.Name + "/pod-controller"}),
			ConfigMapInformer: cluster.Core().V1().ConfigMaps(), SecretInformer: cluster.Core().V1().Secrets(), ServiceInformer: cluster.Core().V1().Services(),
		})
		if err != nil {
			return err
		}
		nodeController, err := node.NewNodeController(node.NaiveNodeProvider{}, n, client.CoreV1().Nodes(),
			node.WithNodeEnableLeaseV1(client.CoordinationV1().Leases(corev1.NamespaceNodeLease), node.DefaultLeaseDuration))
		if err != nil {
			return err
		}

		ctx, cancel := context.WithCancel(ctx)
		defer func() { cancel(); pods.Shutdown(); cluster.Shutdown() }()
		pods.Start(ctx.Done())
		cluster.Start(ctx.Done())

		// The node is registered when the pod controller is ready, and the end of either controller ends the other.
		go func() { _ = podController.Run(ctx, 10) }()
		select {
		case <-podController.Ready():
		case <-podController.Done():
			return podController.Err()
		}
		go func() { _ = nodeController.Run(ctx) }()
		select {
		case <-podController.Done():
		case <-nodeController.Done():
		}
		cancel()
		<-podController.Done()
		<-nodeController.Done()
		return errors.Join(podController.Err(), nodeController.Err())
	}
	// Output:
}

// A pod runs and is deleted. The API server and the backend are in memory.
func ExampleNewPodController() {
	ctx, cancel := context.WithCancel(context.Background())
	api, backend := memapi.New(), memory.New()
	pods, cluster := api.Informer(0), informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	controller, err := node.NewPodController(node.PodControllerConfig{
		PodClient: api, PodInformer: pods, Provider: memory.Notifying{Backend: backend}, EventRecorder: &record.FakeRecorder{},
		ConfigMapInformer: cluster.Core().V1().ConfigMaps(), SecretInformer: cluster.Core().V1().Secrets(), ServiceInformer: cluster.Core().V1().Services(),
	})
	if err != nil {
		panic(err)
	}
	informed := make(chan struct{})
	go func() { defer close(informed); pods.Informer().RunWithContext(ctx) }()
	cluster.Start(ctx.Done())
	go func() { _ = controller.Run(ctx, 4) }()
	<-controller.Ready()

	changes, err := api.Pods("default").Watch(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		panic(err)
	}
	api.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       corev1.PodSpec{NodeName: "vk-1", Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	})
	deleted := false
	for change := range changes.ResultChan() {
		if pod, ok := change.Object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning && !deleted {
			fmt.Println("running")
			deleted = true
			api.Delete("default", "web", 1)
		}
		if change.Type == watch.Deleted {
			fmt.Println("gone")
			break
		}
	}
	cancel()
	changes.Stop()
	<-controller.Done()
	<-informed
	cluster.Shutdown()
	fmt.Println(controller.Err())
	// Output:
	// running
	// gone
	// <nil>
}
