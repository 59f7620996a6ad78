// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"

	"github.com/virtual-kubelet/virtual-kubelet/cmd/virtual-kubelet/internal/scaffold/vk-skeleton/toy"
)

// TestContract runs the provider contract.
//
// FILL(contract): use the provider with your service, or with an emulator: give package toy the routes of your service, or write another one. If the
// images of the service have a shell, use providertest.Shell for Container and Command of the harness.
//
// Except lists the checks that fail because of the service, each with the reason. If you delete a method, these checks fail:
//   - Logs: logs/…, environment/…, deletion/grace, deletion/early and deletion/exit-code, which read the log; logs/previous alone if the service
//     keeps no log of the run before.
//   - Exec: exec/…. With input only at the start, or output only at the end: exec/stdin, exec/terminal, exec/cancel, exec/pod-ends.
//   - Attach: attach/output. Forward: port-forward/both-ways. Stats: stats/summary.
//
// If lists lack a pod as soon as it has ended after Stop, deletion/told and deletion/exit-code fail. If a feature is in Unproven, such as
// ContainerLimits, its check, such as settings/limits, may fail with an emulator.
//
// Tick must be longer than the delay of the service's lists. A longer Tick makes the tests slower.
func TestContract(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		Backend: backend,
		Container: func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Command = "contract", p.Args()
			return nil
		},
		Command:        func(p program.Program) ([]string, error) { return p.Args(), nil },
		Except:         map[string]string{},
		OwnStartErrors: true, // the toy reports no reasons
		Patience:       20 * time.Second, Tick: 50 * time.Millisecond, Parallel: 8,
	})
}

// backend is the service for the contract, with its faults.
func backend(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
	service := toy.New(ctx)
	service.Work = runProgram
	faults := &faults{next: service}
	server := httptest.NewServer(faults)
	config, err := LoadConfig("")
	config.Endpoint, config.ClusterName, config.every = server.URL, "test", 10*time.Millisecond
	answer := func(status int32) func(bool) {
		return func(on bool) {
			if faults.status.Store(0); on {
				faults.status.Store(status)
			}
		}
	}
	return &providertest.Backend{
		Open: func(context.Context) (node.PodLifecycleHandler, error) {
			return newProvider(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, config), config.checkFields()
		},
		Close: func() error {
			server.Close()
			if faults.lose.Load() {
				return errors.New("no answer was lost: isCreate knows no request that the driver has made")
			}
			return nil
		},
		Instances: func(pod *corev1.Pod) (int, error) { return service.Running(identity.TagUID, string(pod.UID)), nil },
		Kill: func(pod *corev1.Pod, container string) error {
			service.Kill(identity.TagUID, string(pod.UID), container)
			return nil
		},
		Lose: func(pod *corev1.Pod) error {
			service.Lose(identity.TagUID, string(pod.UID))
			return nil
		},
		Outage:     answer(http.StatusServiceUnavailable),
		Throttle:   answer(http.StatusTooManyRequests),
		LoseAnswer: func() { faults.lose.Store(true) },
	}, err
}

// faults is a transport that simulates a failing service.
type faults struct {
	next   http.Handler
	status atomic.Int32 // status of all responses; 0: the service responds
	lose   atomic.Bool  // lose the response to the next create
}

// ServeHTTP implements http.Handler.
func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status := f.status.Load(); status != 0 {
		w.WriteHeader(int(status))
		return
	}
	if isCreate(r) && f.lose.CompareAndSwap(true, false) {
		f.next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler) // closes the connection
	}
	f.next.ServeHTTP(w, r)
}

// isCreate reports whether a request may start a pod. LoseAnswer applies to the next such request, so other write requests do not matter.
func isCreate(r *http.Request) bool {
	return r.Method == http.MethodPut || r.Method == http.MethodPost || r.Method == http.MethodPatch
}

// runProgram runs the programs that the contract needs in containers and commands.
func runProgram(ctx context.Context, p toy.Process) int32 {
	prog, err := program.Parse(p.Command)
	if err != nil {
		fmt.Fprintln(p.Stderr, err)
		return 126
	}
	w := program.World{
		Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Env: p.Env, Stop: p.Stop,
		Read:   func(string) ([]byte, fs.FileMode, error) { return nil, 0, fs.ErrNotExist },
		Write:  func(string, []byte) error { return fs.ErrPermission },
		Listen: func(_ context.Context, port int32) (net.Listener, error) { return p.Listen(port) },
	}
	if p.Sizes != nil {
		w.Size, w.Resized = p.Terminal()
	}
	return prog.Run(ctx, w)
}
