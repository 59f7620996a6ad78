// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/aci"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// direct is a connection without a network, for synctest bubbles.
type direct struct{ to http.Handler }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.Host = r.URL.Host
	d.to.ServeHTTP(w, in)
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

// plain returns the objects of pods that refer to none.
type plain struct{}

// ConfigMap implements node.PodObjects.
func (plain) ConfigMap(context.Context, *corev1.Pod, string) (*corev1.ConfigMap, error) {
	return nil, fmt.Errorf("there are none")
}

// Secret implements node.PodObjects.
func (plain) Secret(context.Context, *corev1.Pod, string) (*corev1.Secret, error) {
	return nil, fmt.Errorf("there are none")
}

// Container implements node.PodObjects.
func (plain) Container(_ context.Context, pod *corev1.Pod, _ string) (*corev1.Container, error) {
	return pod.Spec.Containers[0].DeepCopy(), nil
}

// TestRequests runs a thousand pods on a node. The life of a pod costs at most four requests, and a minute at
// rest at most fifteen.
func TestRequests(t *testing.T) {
	const pods = 1000
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		runner := inprocess.Open(inprocess.New(ctx), inprocess.Objects{})
		fleet := emulator.NewFleet(runner, &emulator.Objects{}, 0)
		runner.NotifyPods(ctx, fleet.Report)
		ended := make(chan struct{})
		go func() { _ = runner.RunInBackground(ctx); close(ended) }()
		server := emulated.New(fleet, emulated.Place{Subscription: "sub-1", ResourceGroup: "pods", Region: "westeurope"},
			emulated.Principal{Tenant: tenant, Client: clientID, Secret: clientSecret})
		server.Page, server.TokenLife = 500, 1000*time.Hour
		front := emulator.NewFront(emulated.Operation, server)
		a := &azure{url: "https://azure.example"}
		conf := a.config("home-1")
		conf.Cloud.CAFile, conf.Requests = "", Requests{}
		in := cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "aci"}}}, NodeName: "aci"}
		p, err := open(in, conf, pace{http: &http.Client{Transport: direct{front}}})
		if err != nil {
			t.Fatal(err)
		}
		p.UsePodObjects(plain{})
		server.Subnets = []string{subnet}
		done := make(chan struct{})
		go func() { _ = p.RunInBackground(ctx); close(done) }()
		time.Sleep(2*time.Minute + time.Second) // by now, lists would show all groups of an earlier process
		count := func() int { return len(front.Requests("List", "Get", "Create", "Delete")) }
		begin := count()
		all := make([]*corev1.Pod, pods)
		for i := range all {
			all[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("p-%d", i), UID: types.UID(fmt.Sprintf("u-%d", i))}, Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyAlways,
				Containers:    []corev1.Container{{Name: "main", Image: "program", Command: append([]string{"program"}, program.Program{Stay: program.Forever}.Args()...)}},
			}}
			if err := p.CreatePod(ctx, all[i]); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		running := 0
		for _, pod := range p.Cache().All() {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running != pods {
			t.Errorf("%d of %d pods run", running, pods)
		}
		begun := count()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if rest := count() - begun; rest > 150 || rest < 30 {
			t.Errorf("%d requests in ten minutes at rest, want at most 150, and lists", rest)
		} else {
			t.Logf("%d requests in ten minutes at rest", rest)
		}
		stopping := count()
		if err := p.DeletePod(ctx, all[0]); err != nil {
			t.Fatal(err)
		}
		time.Sleep((poll.GoneAfter + 2) * busyEvery) // one request to see it go, and the rest of a round
		if _, err := p.GetPod(ctx, "ns", all[0].Name); !errdefs.IsNotFound(err) {
			t.Errorf("a pod that is deleted alone is there after %v: %v", (poll.GoneAfter+2)*busyEvery, err)
		}
		for _, pod := range all[1:] {
			if err := p.DeletePod(ctx, pod); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if left := len(p.Cache().All()); left > 0 {
			t.Errorf("%d pods are left", left)
		}
		lives := float64(begun-begin+count()-stopping) / pods
		if lives > 4 {
			t.Errorf("%.2f requests for a life, want at most 4", lives)
		}
		t.Logf("%.2f requests for a life", lives)
		cancel()
		<-done
		<-ended
	})
}
