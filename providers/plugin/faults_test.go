// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc"
)

// ping returns the error of the node's health check.
func ping(t *testing.T, p nodeutil.Provider) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return p.(node.NodeProvider).Ping(ctx)
}

// noEvidence fails the test unless every answer is an error without a kind, so that no pod can be lost by it.
func noEvidence(t *testing.T, p nodeutil.Provider) {
	t.Helper()
	_, getErr := p.GetPod(t.Context(), "default", "web")
	_, statusErr := p.GetPodStatus(t.Context(), "default", "web")
	_, listErr := p.GetPods(t.Context())
	for name, err := range map[string]error{"GetPod": getErr, "GetPodStatus": statusErr, "GetPods": listErr, "CreatePod": p.CreatePod(t.Context(), pod("new", "u9"))} {
		if err == nil || errdefs.IsNotFound(err) || errdefs.IsInvalidInput(err) {
			t.Errorf("%s: got %v, want an error without a kind", name, err)
		}
	}
	if a, ok := p.(node.PodAuthority); ok && a.AnswersForAllPods() {
		t.Error("it answers for all pods, and is not connected")
	}
}

func TestPluginKilled(t *testing.T) {
	process := startProcess(t)
	p := connectedTo(t, process.endpoint())
	if err := errors.Join(p.CreatePod(t.Context(), pod("web", "u1")), ping(t, p)); err != nil {
		t.Fatal(err)
	}
	process.kill()
	eventually(t, "the node is not ready", func() bool { return ping(t, p) != nil })
	contains(t, ping(t, p), "plugin mock at unix://"+process.socket+" is not connected since ")
	noEvidence(t, p)

	process.start() // the plugin has lost its memory
	eventually(t, "the node is ready", func() bool { return ping(t, p) == nil })
	eventually(t, "the plugin answers for all pods", p.(node.PodAuthority).AnswersForAllPods)
	if _, err := p.GetPod(t.Context(), "default", "web"); !errdefs.IsNotFound(err) {
		t.Errorf("the pod that it lost: got %v, want not-found, which the node judges", err)
	}
	if pods, err := p.GetPods(t.Context()); err != nil || len(pods) != 0 {
		t.Errorf("nothing may be created behind the node's back: got %v, %v", names(pods), err)
	}
}

func TestPluginFrozen(t *testing.T) {
	process := startProcess(t)
	own, err := begun(t, Config{Endpoint: process.endpoint()})
	if err != nil {
		t.Fatal(err)
	}
	own.patience = time.Second
	p := run(t, own)
	if err := p.CreatePod(t.Context(), pod("web", "u1")); err != nil {
		t.Fatal(err)
	}
	process.freeze()
	_, hung := p.GetPod(t.Context(), "default", "web") // returns when the plugin counts as frozen
	if hung == nil || errdefs.IsNotFound(hung) || errors.Is(hung, context.DeadlineExceeded) {
		t.Errorf("a call in a frozen plugin: got %v", hung)
	}
	eventually(t, "the node is not ready", func() bool { err := ping(t, p); return err != nil && strings.Contains(err.Error(), "is not connected") })
	noEvidence(t, p)
	process.signal(syscall.SIGCONT)
	eventually(t, "the node is ready", func() bool { return ping(t, p) == nil })
	if got, err := p.GetPod(t.Context(), "default", "web"); err != nil || got.UID != "u1" {
		t.Errorf("after the freeze: got %v, %v", got, err)
	}
}

// slow is a provider with slow answers.
type slow struct {
	node.PodLifecycleHandler
	called   chan time.Time // the deadline
	released chan struct{}
}

func (s *slow) CreatePod(ctx context.Context, _ *corev1.Pod) error {
	deadline, _ := ctx.Deadline()
	s.called <- deadline
	select {
	case <-s.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestWireSlowAnswer(t *testing.T) {
	s := &slow{newMock(), make(chan time.Time, 1), make(chan struct{})}
	own, err := begun(t, Config{Endpoint: served(t, s)})
	if err != nil {
		t.Fatal(err)
	}
	own.patience = 200 * time.Millisecond
	p := run(t, own)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err = p.CreatePod(ctx, pod("web", "u1"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the deadline", err)
	}
	want, _ := ctx.Deadline()
	if got := <-s.called; got.Sub(want).Abs() > time.Second {
		t.Errorf("the plugin saw the deadline %v, want %v", got, want)
	}
	if err := ping(t, p); err != nil {
		t.Errorf("a slow call is no frozen plugin: %v", err)
	}
	close(s.released)
	if err := p.CreatePod(t.Context(), pod("web", "u1")); err != nil {
		t.Error(err)
	}
}

// refusing refuses each pod with the error that the pod's name stands for.
type refusing struct {
	node.PodLifecycleHandler
	errs map[string]error
}

func (r refusing) CreatePod(_ context.Context, pod *corev1.Pod) error { return r.errs[pod.Name] }

func TestErrorKindsSurvive(t *testing.T) {
	errs := map[string]error{
		"none":          errors.New("no such class"),
		"not-found":     errdefs.NotFound("no such class"),
		"invalid-input": errdefs.InvalidInput("no such class"),
		"both":          errdefs.AsNotFound(errdefs.InvalidInput("no such class")),
		"retry-after":   errdefs.RetryAfter(errors.New("no such class"), 7*time.Second),
		"all":           errdefs.RetryAfter(errdefs.AsNotFound(errdefs.InvalidInput("no such class")), 7*time.Second),
		"deadline":      context.DeadlineExceeded,
	}
	p := connectedTo(t, served(t, refusing{newMock(), errs}))
	for name, want := range errs {
		if err := p.CreatePod(t.Context(), pod(name, "u1")); said(nil, err) != said(nil, want) {
			t.Errorf("%s: got %s, want %s", name, said(nil, err), said(nil, want))
		}
	}
}

// large has a pod that exceeds the message limit.
type large struct{ node.PodLifecycleHandler }

func (large) GetPods(context.Context) ([]*corev1.Pod, error) {
	p := pod("large", "u2")
	p.Annotations = map[string]string{"a": strings.Repeat("x", 1<<20)}
	return []*corev1.Pod{pod("web", "u1"), p}, nil
}

func TestWireMessageOverTheLimit(t *testing.T) {
	endpoint := served(t, large{newMock()}, func(o *providerrpc.Options) { o.MaxMessageBytes = 512 << 10 })
	p := connectedTo(t, endpoint)
	big, _ := large{}.GetPods(t.Context())
	contains(t, p.CreatePod(t.Context(), big[1]), "pod default/large has ", "the plugin takes messages of 524288", "raise MaxMessageBytes")
	if err := p.DeletePod(t.Context(), big[1]); !errdefs.IsNotFound(err) {
		t.Errorf("a pod that became too large must still go: got %v, want the answer of the plugin", err)
	}
	pods, err := p.GetPods(t.Context())
	contains(t, err, "raise the limit on both sides")
	if pods != nil {
		t.Errorf("got %v beside the error, want no partial list", names(pods))
	}
	if err := ping(t, p); err != nil {
		t.Errorf("a large message must not end the connection: %v", err)
	}
}

// TestWireMessageOverTheLimitOfTheNode checks that the node may refuse a message that the plugin may send.
func TestWireMessageOverTheLimitOfTheNode(t *testing.T) {
	own, err := begun(t, Config{Endpoint: served(t, large{newMock()}), MaxMessageBytes: 512 << 10})
	if err != nil {
		t.Fatal(err)
	}
	p := run(t, own)
	pods, err := p.GetPods(t.Context())
	contains(t, err, "raise the limit on both sides, maxMessageBytes")
	if err := ping(t, p); err != nil || pods != nil {
		t.Errorf("got %v beside the error, and %v", names(pods), err)
	}
}

func TestWireForeignSocket(t *testing.T) {
	refused := func(name, path string, want ...string) {
		t.Helper()
		config := Config{Endpoint: "unix://" + path}
		config.StartTimeout.Duration = 100 * time.Millisecond
		_, err := begun(t, config)
		t.Log(name)
		contains(t, err, want...)
	}
	dir := shortDir(t)
	refused("nothing", dir+"/none", "no such file")
	file := dir + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("a file", file, "is no socket")
	contains(t, serveMock(t.Context(), file, func() {}), "is there and is no socket")

	path := strings.TrimPrefix(served(t, newMock()), "unix://")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has the mode %v (%v), want 0600", info.Mode(), err)
	}
	contains(t, serveMock(t.Context(), path, func() {}), "another plugin listens on "+path)
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	refused("others may connect", path, "0666", "want 0600")
	if os.Geteuid() != 0 {
		t.Skip("the rest needs root, to give a socket to somebody else")
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.Chown(path, 65534, -1)); err != nil {
		t.Fatal(err)
	}
	refused("somebody else's", path, "belongs to the user 65534")
}

// TestSocketOfTheDead checks that a socket without a listener is replaced, and removed at the end.
func TestSocketOfTheDead(t *testing.T) {
	path := shortDir(t) + "/s"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	if err := serveMock(ctx, path, cancel); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket stays: %v", err)
	}
}

// forgetful is a provider that starts containers one by one, and so need not keep specs.
type forgetful struct {
	*bare
	updated chan string
	created atomic.Int32
}

func (f *forgetful) UsePodObjects(node.PodObjects) {}
func (f *forgetful) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	f.created.Add(1)
	return f.bare.CreatePod(ctx, pod)
}

func (f *forgetful) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	f.updated <- pod.Name + " " + pod.Spec.Containers[0].Image
	return nil
}

// TestWireRestartedWithLostMemory checks that such a plugin gets the specs of exactly the pods that it still
// has.
func TestWireRestartedWithLostMemory(t *testing.T) {
	f := &forgetful{bare: &bare{newMock()}, updated: make(chan string, 10)}
	socket := shortDir(t) + "/s"
	serve := func() (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		done, listening := make(chan error, 1), make(chan struct{})
		go func() { done <- providerrpc.Serve(ctx, f, options(socket, func() { close(listening) })) }()
		<-listening
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	stop := serve()
	p := connectedTo(t, "unix://"+socket)
	for _, name := range []string{"kept", "lost"} {
		if err := p.CreatePod(t.Context(), pod(name, "u-"+name)); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	eventually(t, "the node is not ready", func() bool { return ping(t, p) != nil })
	f.bare = &bare{newMock()}
	if err := f.bare.CreatePod(t.Context(), pod("kept", "u-kept")); err != nil {
		t.Fatal(err)
	}
	defer serve()()
	eventually(t, "the node is ready", func() bool { return ping(t, p) == nil })
	if got := <-f.updated; got != "kept busybox" || len(f.updated) != 0 || f.created.Load() != 2 {
		t.Errorf("got %q and %d more updates, %d creations; want one update of the pod that is there", got, len(f.updated), f.created.Load())
	}
}
