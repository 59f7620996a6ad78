// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// listens returns a listener on a free port of this machine, and the port.
func listens(t *testing.T) (net.Listener, int32) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, int32(l.Addr().(*net.TCPAddr).Port)
}

// silent returns a port of this machine without a listener. One end of a connection holds the port, so no
// listener appears until the test ends.
func silent(t *testing.T) int32 {
	t.Helper()
	l, _ := listens(t)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return int32(conn.LocalAddr().(*net.TCPAddr).Port)
}

// asksPort returns a readiness probe of a port.
func asksPort(port int32) *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 1, SuccessThreshold: 1, ProbeHandler: corev1.ProbeHandler{
		TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)},
	}}
}

// TestReadinessOutlivesTheNode checks that a container keeps its readiness over a restart of this process, until
// a probe changes it.
func TestReadinessOutlivesTheNode(t *testing.T) {
	c := cloudOf(t)
	conf, err := c.config("home")
	if err != nil {
		t.Fatal(err)
	}
	listener, port := listens(t)
	var probed atomic.Int32
	go func() { // until the listener is closed
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
			probed.Add(1)
		}
	}()
	var mu sync.Mutex
	var reports []bool // guarded by mu
	live := func(pods ...*corev1.Pod) (p *driver, stop func()) {
		t.Helper()
		known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		for _, pod := range pods {
			if err := known.Add(pod); err != nil {
				t.Fatal(err)
			}
		}
		in := cli.ProviderInput{NodeName: "node"}
		in.Pods = corelisters.NewPodLister(known)
		p, err := newDriver(t.Context(), in, conf, quick)
		if err != nil {
			t.Fatal(err)
		}
		p.kit.UsePodObjects(values{})
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		p.kit.NotifyPods(ctx, func(pod *corev1.Pod) {
			mu.Lock()
			defer mu.Unlock()
			reports = append(reports, isReady(pod))
		})
		done := make(chan error, 1)
		go func() { done <- p.kit.RunInBackground(ctx) }()
		stop = sync.OnceFunc(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(stop)
		return p, stop
	}

	first, stop := live()
	pod := podOf("ready", program.Program{Stay: program.Forever})
	pod.Spec.Containers[0].ReadinessProbe = asksPort(port)
	if err := first.kit.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	was := until(t, first, "ready", "ready", isReady)
	stop()
	mu.Lock()
	reports = nil
	mu.Unlock()

	was.Spec.Containers[0].ReadinessProbe.InitialDelaySeconds = 3600 // a container that was found ready does not wait for this delay again
	probed.Store(0)
	second, _ := live(was)
	if err := second.kit.Cache().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pod, err := second.kit.GetPod(t.Context(), "shop", "ready"); err != nil || !isReady(pod) {
		t.Errorf("after a restart: got %+v, %v, want a pod that is ready", pod, err)
	}
	tick := everyMoment(t)
	for probed.Load() == 0 {
		tick("the container is probed again")
	}
	mu.Lock()
	for _, ready := range reports {
		if !ready {
			t.Error("the pod was reported as not ready, and no probe failed")
			break
		}
	}
	mu.Unlock()
	listener.Close()
	until(t, second, "ready", "not ready, as nobody listens any more", func(pod *corev1.Pod) bool { return isRunning(pod) && !isReady(pod) })
}

func isReady(pod *corev1.Pod) bool {
	return isRunning(pod) && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].Ready
}
