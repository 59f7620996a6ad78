// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// NodeProvider is a provider that reports the health of its node.
type NodeProvider interface {
	nodeutil.Provider
	node.NodeProvider
	cli.NodeConfigurer
}

// RunNode runs a whole node of a real home cluster until stop is called, or the test ends. The remote cluster may not answer yet.
func RunNode(t *testing.T, api *testapi.API, name string, newProvider func(cli.ProviderInput) (NodeProvider, error), opts ...nodeutil.NodeOpt) (_ *nodeutil.Node, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	n, err := nodeutil.NewNode(name, func(c nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		p, err := newProvider(cli.ProviderInput{ProviderConfig: c, NodeName: name})
		if err != nil {
			return nil, nil, err
		}
		p.ConfigureNode(ctx, c.Node)
		return p, p, nil
	}, append(opts, nodeutil.WithClient(api.Client))...)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = n.Run(ctx) }() // Err has the error
	stop = sync.OnceFunc(func() {
		cancel()
		<-n.Done()
		if err := n.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("the node ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return n, stop
}

// Whole is a whole node between two real clusters.
type Whole struct {
	*testing.T
	// API is the API server of home. Remote is the API server of the other cluster.
	API, Remote *testapi.API
	// Name is the name of the node, and the name of home in the remote cluster.
	Name      string
	Namespace string
	Line      *Line
	// Start starts the node, and waits until it is Ready.
	Start func() (stop func())
	// More runs additional checks while pods run. Nil means none.
	More func()
}

// Run checks a Deployment of home in the remote cluster: it runs over a restart of the node, has a token that
// the home API server accepts, and is gone from the remote cluster after its deletion.
func (w Whole) Run() {
	w.Helper()
	stop := w.Start()
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: w.Name, TerminationGracePeriodSeconds: ptr.To(int64(1)), Containers: []corev1.Container{{
			Name: "main", Image: "program", Args: Stays().Args()}}},
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}}
	deployments := w.API.Client.AppsV1().Deployments(w.Namespace)
	if _, err := deployments.Create(w.Context(), deployment, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	available := func() (bool, string) {
		d, err := deployments.Get(w.Context(), "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 3, fmt.Sprint(d.Status, err)
	}
	Until(w.T, "three pods are available", available)
	before := Containers(w.T, w.API, w.Namespace)
	if w.More != nil {
		w.More()
	}
	w.checkTokens()

	stop()
	w.Line.Writes()
	stop = w.Start()
	Until(w.T, "three pods are available after the restart", available)
	if after := Containers(w.T, w.API, w.Namespace); fmt.Sprint(after) != fmt.Sprint(before) {
		w.Errorf("after the restart the containers are %v, before it they were %v", after, before)
	}
	if writes := w.Line.Writes(); len(writes) > 0 {
		w.Errorf("the restart wrote to the remote cluster: %q", writes)
	}

	if err := deployments.Delete(w.Context(), "web", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		w.Fatal(err)
	}
	Until(w.T, "nothing is left on both sides", w.nothingLeft)
	stop()
}

// Mine selects the objects of the node in the remote cluster.
func (w Whole) Mine() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: remotecluster.Home{Cluster: w.Name, Node: w.Name}.Selector()}
}

// checkTokens submits a token from the remote cluster to the home API server.
func (w Whole) checkTokens() {
	w.Helper()
	secrets, err := w.Remote.Client.CoreV1().Secrets("").List(w.Context(), w.Mine())
	if err != nil || len(secrets.Items) != 3 {
		w.Fatalf("the remote cluster has %d Secrets of the node (%v), want one for each pod", len(secrets.Items), err)
	}
	for key, token := range secrets.Items[0].Data {
		if !strings.HasSuffix(key, ".0.0") { // the token is the first source of the volume
			continue
		}
		review, err := w.API.Client.AuthenticationV1().TokenReviews().Create(w.Context(), &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: string(token)}}, metav1.CreateOptions{})
		if err != nil || review.Status.User.Username != "system:serviceaccount:"+w.Namespace+":default" {
			w.Errorf("the home API server says of the token: %v (%v)", review.Status, err)
		}
	}
}

// nothingLeft reports whether no pod is left on either side, and no Secret in the remote cluster.
func (w Whole) nothingLeft() (bool, string) {
	here, err := w.API.Client.CoreV1().Pods(w.Namespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		return false, err.Error()
	}
	there, err := w.Remote.Client.CoreV1().Pods("").List(w.Context(), w.Mine())
	if err != nil {
		return false, err.Error()
	}
	secrets, err := w.Remote.Client.CoreV1().Secrets("").List(w.Context(), w.Mine())
	return err == nil && len(here.Items)+len(there.Items)+len(secrets.Items) == 0,
		fmt.Sprintf("%d pods here, %d pods and %d Secrets there, %v", len(here.Items), len(there.Items), len(secrets.Items), err)
}

// Containers returns the containers of the pods in a namespace of home, by pod: their IDs and restart counts.
func Containers(t *testing.T, api *testapi.API, namespace string) map[string]string {
	t.Helper()
	pods, err := api.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			out[pod.Name] = fmt.Sprint(c.ContainerID, " ", c.RestartCount)
		}
	}
	return out
}
