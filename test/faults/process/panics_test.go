// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/test/faults/internal/backend"
)

// panicking is a script that makes the first calls of every method panic. For methods with a pod, this applies
// only to pods whose name begins with bad.
type panicking struct {
	mu    sync.Mutex
	times map[string]int // guarded by mu; keyed by method and key
}

// panicsEach is the number of panics of each method for each pod.
const panicsEach = 2

func (p *panicking) script(method, key string) backend.Fault {
	if key != "/" && !strings.Contains(key, "/bad") {
		return backend.Fault{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.times[method+" "+key] >= panicsEach {
		return backend.Fault{}
	}
	p.times[method+" "+key]++
	return backend.Fault{Panic: "scripted"}
}

func (p *panicking) total() (n int, methods map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	methods = map[string]int{}
	for call, times := range p.times {
		n += times
		method, _, _ := strings.Cut(call, " ")
		methods[method] += times
	}
	return n, methods
}

// TestFault06ProviderPanics makes every method of the provider panic twice for each of some pods, while others come and go.
func TestFault06ProviderPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	first := w.start()
	bad := []*actor{{world: w, name: "bad-0"}, {world: w, name: "bad-1"}}
	for _, a := range bad {
		a.create(corev1.RestartPolicyAlways)
		a.awaitPhase(corev1.PodRunning)
	}
	first.kill()

	script := &panicking{times: map[string]int{}}
	w.backend.Script(script.script)
	c := w.start()
	churn := w.churnAt(3)
	late := &actor{world: w, name: "bad-2"}
	late.create(corev1.RestartPolicyAlways)
	late.awaitPhase(corev1.PodRunning)
	for _, a := range bad {
		a.patch("change the image", `{"metadata":{"uid":%q},"spec":{"containers":[{"name":"main","image":"example.test/image:2"}]}}`, a.pod.UID)
	}
	w.await("UpdatePod has panicked", func() bool { _, m := script.total(); return m["UpdatePod"] >= panicsEach*len(bad) })
	w.request(script)
	w.awaitEvent("panicked")
	for _, a := range append(bad, late) {
		a.remove(nil)
		a.awaitGone()
	}
	churn.stop()
	w.awaitInStep()
	w.judged()

	n, methods := script.total()
	for _, method := range []string{"CreatePod", "UpdatePod", "DeletePod", "GetPod", "GetPodStatus", "GetPods", "Ping", "RunInContainer",
		"AttachToContainer", "PortForward", "GetContainerLogs", "GetStatsSummary"} {
		if methods[method] == 0 {
			t.Errorf("%s never panicked", method)
		}
	}
	if counted := c.panics(); counted != n {
		t.Errorf("virtual_kubelet_provider_panics_total is %d in all, want %d: %v", counted, n, methods)
	}
	select {
	case <-c.done:
		t.Errorf("the daemon ended: %v:\n%s", c.err, c.said.Tail())
	default:
	}
	faultrow.Record(t, 6, fmt.Sprintf("%d panics in %d methods, with the goroutines of exec, attach and port-forward, and 3 pods/s of churn", n, len(methods)),
		"the process lived, violations 0 in %d pods, virtual_kubelet_provider_panics_total=%d, an event on the pod", w.records.pods, n)
}

// request sends requests of all kinds to a pod until each kind has panicked.
func (w *world) request(script *panicking) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	pods := w.pods()
	for _, r := range []struct {
		method string
		do     func() error
	}{
		{"RunInContainer", func() error { return w.run(ctx, true, "bad-0", io.Discard, "exit", "0") }},
		{"RunInContainer", func() error { return w.run(ctx, false, "bad-1", io.Discard, "exit", "0") }},
		{"AttachToContainer", func() error { return w.attach(ctx) }},
		{"PortForward", func() error { return w.forward(ctx) }},
		{"GetContainerLogs", func() error { return pods.GetLogs("bad-0", &corev1.PodLogOptions{}).Do(ctx).Error() }},
		{"GetStatsSummary", func() error { return w.direct(ctx, "/stats/summary") }},
	} {
		for range panicsEach {
			if err := r.do(); err == nil {
				w.Errorf("%s panicked, and the request for it had no error", r.method)
			}
		}
	}
}

// attach attaches to a container for as long as the call lasts.
func (w *world) attach(ctx context.Context) error {
	req := w.api.Client.CoreV1().RESTClient().Post().Namespace(w.namespace).Resource("pods").Name("bad-0").SubResource("attach")
	return w.stream(ctx, req, &corev1.PodAttachOptions{Container: "main", Stdout: true})
}

// forward makes one connection through a port-forward, and returns the error that ends the connection.
func (w *world) forward(ctx context.Context) error {
	url := w.api.Client.CoreV1().RESTClient().Post().Namespace(w.namespace).Resource("pods").Name("bad-0").SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(w.api.Config)
	if err != nil {
		return err
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	said := &bytes.Buffer{}
	f, err := portforward.NewOnAddresses(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", url), []string{"127.0.0.1"}, []string{"0:80"}, stop, ready, io.Discard, said)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	ports, err := f.GetPorts()
	if err != nil {
		return err
	}
	err = talk(ctx, fmt.Sprintf("127.0.0.1:%d", ports[0].Local))
	close(stop)
	return errors.Join(err, <-done)
}

// awaitEvent waits for an event of the daemon with the text in it.
func (w *world) awaitEvent(text string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for {
		events, err := w.api.Client.CoreV1().Events(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			w.Fatalf("list events: %v", err)
		}
		for i := range events.Items {
			if strings.Contains(events.Items[i].Message, text) {
				return
			}
		}
		if !pass(ctx, 200*time.Millisecond) {
			w.Fatalf("no event says %q", text)
		}
	}
}

var panicCount = regexp.MustCompile(`(?m)^virtual_kubelet_provider_panics_total\{.*\} (\d+)$`)

// panics returns the daemon's own count of panics.
func (c *child) panics() (n int) {
	c.Helper()
	for _, m := range panicCount.FindAllStringSubmatch(c.ask("metrics"), -1) {
		k, err := strconv.Atoi(m[1])
		if err != nil {
			c.Fatal(err)
		}
		n += k
	}
	return n
}
