// SPDX-License-Identifier: Apache-2.0

package tensilekube

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
	"github.com/virtual-kubelet/virtual-kubelet/internal/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// startNode runs a whole node of the upper cluster until stop is called, or the test ends.
func startNode(t *testing.T, api *testapi.API, w *worker, name string, l *line) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	n, err := nodeutil.NewNode(name, func(c nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		p, err := newProvider(cli.ProviderInput{ProviderConfig: c, NodeName: name}, w.config(name), l.through(w.api.Config))
		if err != nil {
			return nil, nil, err
		}
		p.ConfigureNode(ctx, c.Node)
		return p, p, nil
	}, nodeutil.WithClient(api.Client))
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
	if err := n.WaitReady(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	return stop
}

// TestWholeNode has two real clusters: a Deployment of the upper one runs in the lower one, over a restart of the node, with a token
// that the upper API server takes, and is gone from there when it is deleted.
func TestWholeNode(t *testing.T) {
	w, api := startWorker(t, testapi.Start(t)), testapi.New(t, testapi.Options{})
	u, l, name := &upper{T: t}, &line{}, "upper-node"
	stop := startNode(t, api, w, name, l)
	ns := api.Namespace(t)
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: name, TerminationGracePeriodSeconds: ptr.To(int64(1)), Containers: []corev1.Container{{
			Name: "main", Image: "program", Args: program.Program{Stay: program.Forever}.Args()}}},
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}}
	if _, err := api.Client.AppsV1().Deployments(ns).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	available := func() (bool, string) {
		d, err := api.Client.AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 3, fmt.Sprint(d.Status, err)
	}
	u.until("three pods are available", available)
	before := ids(t, api, ns)

	mine := metav1.ListOptions{LabelSelector: homeOfTest(name)}
	secrets, err := w.api.Client.CoreV1().Secrets("").List(t.Context(), mine)
	if err != nil || len(secrets.Items) != 3 {
		t.Fatalf("the lower cluster has %d Secrets of the node (%v), want one for each pod", len(secrets.Items), err)
	}
	for key, token := range secrets.Items[0].Data {
		if !strings.HasSuffix(key, ".0.0") { // the token is the first source of the volume
			continue
		}
		review, err := api.Client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: string(token)}}, metav1.CreateOptions{})
		if err != nil || review.Status.User.Username != "system:serviceaccount:"+ns+":default" {
			t.Errorf("the upper API server says of the token: %v (%v)", review.Status, err)
		}
	}

	stop()
	l.writes()
	stop = startNode(t, api, w, name, l)
	u.until("three pods are available after the restart", available)
	if after := ids(t, api, ns); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("after the restart the containers are %v, before it they were %v", after, before)
	}
	if writes := l.writes(); len(writes) > 0 {
		t.Errorf("the restart wrote to the lower cluster: %q", writes)
	}

	if err := api.Client.AppsV1().Deployments(ns).Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		t.Fatal(err)
	}
	u.until("nothing is left on both sides", func() (bool, string) {
		here, err := api.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		there, err := w.api.Client.CoreV1().Pods("").List(t.Context(), mine)
		if err != nil {
			return false, err.Error()
		}
		secrets, err := w.api.Client.CoreV1().Secrets("").List(t.Context(), mine)
		return err == nil && len(here.Items)+len(there.Items)+len(secrets.Items) == 0,
			fmt.Sprintf("%d pods here, %d pods and %d Secrets there, %v", len(here.Items), len(there.Items), len(secrets.Items), err)
	})
	stop()
}

// ids are the containers of the pods of a namespace, with their restarts.
func ids(t *testing.T, api *testapi.API, ns string) map[string]string {
	t.Helper()
	pods, err := api.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
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

func homeOfTest(name string) string { return remotecluster.Home{Cluster: name, Node: name}.Selector() }
