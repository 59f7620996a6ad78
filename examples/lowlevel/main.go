// SPDX-License-Identifier: Apache-2.0

// Command lowlevel runs a virtual node from the two controllers of package
// node, with clients, informers and events made by hand.
//
// It keeps its pods in memory. What surprises: it has no HTTP server, so kubectl logs
// and exec do not work on its pods; see the nodeutil example.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	logslog "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

const (
	resync     = time.Minute
	podWorkers = 10
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig `file`")
	nodeName := flag.String("nodename", "lowlevel", "`name` of the node")
	flag.Parse()
	log.L = logslog.FromSlog(slog.Default())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *nodeName); err != nil && !errors.Is(err, context.Canceled) {
		log.G(ctx).Fatal(err)
		os.Exit(1)
	}
}

// run runs the node until ctx ends.
func run(ctx context.Context, kubeconfig, nodeName string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}

	// The informer of pods sees those of this node only.
	pods := informers.NewSharedInformerFactoryWithOptions(client, resync,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", nodeName).String()
		}))
	cluster := informers.NewSharedInformerFactory(client, resync)

	events := record.NewBroadcaster()
	defer events.Shutdown()
	events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events(corev1.NamespaceAll)})

	podController, err := node.NewPodController(node.PodControllerConfig{
		PodClient:         client.CoreV1(),
		PodInformer:       pods.Core().V1().Pods(),
		EventRecorder:     events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: nodeName + "/pod-controller"}),
		Provider:          newProvider(),
		ConfigMapInformer: cluster.Core().V1().ConfigMaps(),
		SecretInformer:    cluster.Core().V1().Secrets(),
		ServiceInformer:   cluster.Core().V1().Services(),
	})
	if err != nil {
		return fmt.Errorf("make pod controller: %w", err)
	}
	nodeController, err := node.NewNodeController(node.NaiveNodeProvider{}, newNode(nodeName), client.CoreV1().Nodes(),
		node.WithNodeEnableLeaseV1(client.CoordinationV1().Leases(corev1.NamespaceNodeLease), node.DefaultLeaseDuration))
	if err != nil {
		return fmt.Errorf("make node controller: %w", err)
	}

	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		pods.Shutdown()
		cluster.Shutdown()
	}()
	pods.Start(ctx.Done())
	cluster.Start(ctx.Done())

	// The node appears when somebody is there to take its pods.
	go func() { _ = podController.Run(ctx, podWorkers) }()
	select {
	case <-podController.Ready():
	case <-podController.Done():
		return podController.Err()
	}
	go func() { _ = nodeController.Run(ctx) }()

	// Whichever controller ends first ends the other.
	select {
	case <-podController.Done():
	case <-nodeController.Done():
	}
	cancel()
	<-podController.Done()
	<-nodeController.Done()
	return errors.Join(podController.Err(), nodeController.Err())
}

// newNode describes the node. The taint keeps pods away that do not ask for it.
func newNode(name string) *corev1.Node {
	size := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				"type":                 "virtual-kubelet",
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   runtime.GOOS,
				corev1.LabelArchStable: runtime.GOARCH,
			},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{
			Key: "virtual-kubelet.io/provider", Value: "lowlevel", Effect: corev1.TaintEffectNoSchedule,
		}}},
		Status: corev1.NodeStatus{
			Capacity:    size,
			Allocatable: size,
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
		},
	}
}
