// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc"
	"github.com/virtual-kubelet/virtual-kubelet/providers/mock"
)

// pluginSocket makes the test binary a plugin on that socket: with the directory in pluginFolder, or with the
// provider mock. It writes a line once it listens.
const pluginSocket, pluginFolder = "VK_TEST_PLUGIN_SOCKET", "VK_TEST_PLUGIN_FOLDER"

// folderLimit is the message limit of the provider folder.
const folderLimit = 128 << 10

func TestMain(m *testing.M) {
	if socket := os.Getenv(pluginSocket); socket != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		o := options(socket, func() { fmt.Println("listening") })
		var p node.PodLifecycleHandler = newMock()
		if dir := os.Getenv(pluginFolder); dir != "" {
			p, o.Name, o.MaxMessageBytes = &folder{dir: dir}, "folder", folderLimit
		}
		if err := providerrpc.Serve(ctx, p, o); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func newMock() nodeutil.Provider {
	p, err := mock.New(context.Background(), cli.ProviderInput{NodeName: "n"}, mock.DefaultConfig())
	if err != nil {
		panic(err)
	}
	return p
}

func serveMock(ctx context.Context, socket string, listening func()) error {
	return providerrpc.Serve(ctx, newMock(), options(socket, listening))
}

// shortDir makes a directory with a path that is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vkp") //nolint:usetesting // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// served serves p in this process until the test ends, and returns its endpoint.
func served(t *testing.T, p node.PodLifecycleHandler, change ...func(*providerrpc.Options)) string {
	t.Helper()
	socket := shortDir(t) + "/s"
	listening := make(chan struct{})
	o := options(socket, func() { close(listening) })
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- providerrpc.Serve(ctx, p, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	select {
	case <-listening:
	case err := <-done:
		t.Fatal(err)
	}
	return "unix://" + socket
}

// connectedTo returns the provider for a plugin, with its background work running. It notices quickly when the
// plugin is gone.
func connectedTo(t *testing.T, endpoint string) nodeutil.Provider {
	t.Helper()
	p, err := begun(t, Config{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	return run(t, p)
}

// run runs the background work of p until the test ends.
func run(t *testing.T, p *plugin) nodeutil.Provider {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	if p.notify == nil {
		p.notify = func(*corev1.Pod) {}
	}
	go func() { done <- p.RunInBackground(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("background: %v", err)
		}
	})
	return p.withAbilities()
}

func testNode() Node {
	n := &corev1.Node{}
	n.Name = "n"
	return Node{Node: n, InternalIP: "192.0.2.1", DaemonPort: 10250, OperatingSystem: "linux"}
}

func pod(name, uid string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID = "default", name, typesUID(uid)
	p.Spec.NodeName = "n"
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "busybox"}}
	return p
}

func contains(t *testing.T, err error, all ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", all)
	}
	for _, want := range all {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	}
}
