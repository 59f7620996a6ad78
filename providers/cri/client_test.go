// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/exec"
)

// patience is a timeout that is long enough for a busy machine.
const patience = 30 * time.Second

// scripted is a fake runtime with configurable responses. It has no events.
type scripted struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer
	sandboxes func(context.Context) (*runtimeapi.ListPodSandboxResponse, error)
	exec      func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error)
	pull      func(context.Context) error
	version   *runtimeapi.VersionResponse
	info      map[string]string // of the status
}

func (s *scripted) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{}, Info: s.info}, nil
}

func (s *scripted) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	if s.version == nil {
		return nil, status.Error(codes.Unimplemented, "no version")
	}
	return s.version, nil
}

func (s *scripted) ListPodSandbox(ctx context.Context, _ *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	if s.sandboxes == nil {
		return &runtimeapi.ListPodSandboxResponse{}, nil
	}
	return s.sandboxes(ctx)
}

func (s *scripted) ExecSync(ctx context.Context, r *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	return s.exec(ctx, r)
}

func (s *scripted) PullImage(ctx context.Context, _ *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	if err := s.pull(ctx); err != nil {
		return nil, err
	}
	return &runtimeapi.PullImageResponse{ImageRef: "sha256:1"}, nil
}

// serve starts the runtime at the socket. The returned function stops it.
func serve(t *testing.T, socket string, s *scripted) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxSendMsgSize(maxMessage))
	runtimeapi.RegisterRuntimeServiceServer(server, s)
	runtimeapi.RegisterImageServiceServer(server, s)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	stop = sync.OnceFunc(func() {
		server.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// connected returns a client of the runtime, and the runtime's socket.
func connected(t *testing.T, s *scripted) *Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	serve(t, socket, s)
	return client(t, socket)
}

func client(t *testing.T, socket string) *Client {
	t.Helper()
	c, err := Connect("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func TestCallsWorkAgainAfterARestartOfTheRuntime(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	c := client(t, socket)
	list := func() error {
		_, err := c.ListPodSandbox(t.Context(), nil)
		return err
	}
	if err := list(); status.Code(err) != codes.Unavailable {
		t.Errorf("before the runtime runs: %v, want Unavailable", err)
	}
	stop := serve(t, socket, &scripted{})
	await(t, "the first start", func() bool { return list() == nil })
	stop()
	if err := list(); status.Code(err) != codes.Unavailable {
		t.Errorf("while the runtime is down: %v, want Unavailable", err)
	}
	serve(t, socket, &scripted{})
	await(t, "the restart", func() bool { return list() == nil })
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("calls do not work after %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestEveryCallHasTheLimitOfItsKind(t *testing.T) {
	for _, test := range []struct {
		call any
		want time.Duration
	}{
		{&runtimeapi.ListContainersRequest{}, 2 * time.Minute},
		{&runtimeapi.RunPodSandboxRequest{}, 4 * time.Minute},
		{&runtimeapi.StopContainerRequest{Timeout: 30}, 2*time.Minute + 30*time.Second},
		{&runtimeapi.StopContainerRequest{Timeout: -1}, 2 * time.Minute},
		{&runtimeapi.StopContainerRequest{Timeout: 1 << 62}, 2*time.Minute + (1<<32)*time.Second},
		{&runtimeapi.ExecSyncRequest{Timeout: 10}, 2*time.Minute + 10*time.Second},
		{&runtimeapi.ExecSyncRequest{}, 0},
		{&runtimeapi.PullImageRequest{}, 0},
	} {
		if got := callLimit(test.call); got != test.want {
			t.Errorf("limit(%T %v) = %v, want %v", test.call, test.call, got, test.want)
		}
	}
}

func TestTheLimitReachesTheRuntime(t *testing.T) {
	var listed, pulled bool
	c := connected(t, &scripted{
		sandboxes: func(ctx context.Context) (*runtimeapi.ListPodSandboxResponse, error) {
			_, listed = ctx.Deadline()
			return &runtimeapi.ListPodSandboxResponse{}, nil
		},
		pull: func(ctx context.Context) error {
			_, pulled = ctx.Deadline()
			return nil
		},
	})
	if _, err := c.ListPodSandbox(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PullImage(t.Context(), &runtimeapi.ImageSpec{}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if !listed || pulled {
		t.Errorf("a list has a deadline: %t, a pull: %t; want true, false", listed, pulled)
	}
}

func TestListsOfMoreThanFourMebibytes(t *testing.T) {
	const n = 8 << 10
	c := connected(t, &scripted{sandboxes: func(context.Context) (*runtimeapi.ListPodSandboxResponse, error) {
		answer := &runtimeapi.ListPodSandboxResponse{}
		for i := range n {
			answer.Items = append(answer.Items, &runtimeapi.PodSandbox{Id: fmt.Sprintf("%01000d", i)})
		}
		return answer, nil
	}})
	list, err := c.ListPodSandbox(t.Context(), nil)
	if err != nil || len(list) != n {
		t.Errorf("got %d sandboxes, %v; want %d", len(list), err, n)
	}
}

func TestExecSync(t *testing.T) {
	var asked int64
	answer := &runtimeapi.ExecSyncResponse{Stdout: []byte("out"), Stderr: []byte("err")}
	var fails error
	c := connected(t, &scripted{exec: func(_ context.Context, r *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		asked = r.GetTimeout()
		return answer, fails
	}})
	out, _, err := c.ExecSync(t.Context(), "id", []string{"true"}, 1500*time.Millisecond)
	if err != nil || string(out) != "out" || asked != 2 {
		t.Errorf("got %q, %v, timeout %d s; want out, no error, 2 s", out, err, asked)
	}
	answer.ExitCode = 3
	var exited exec.ExitError
	out, errOut, err := c.ExecSync(t.Context(), "id", []string{"false"}, 0)
	if !errors.As(err, &exited) || exited.ExitStatus() != 3 || string(out) != "out" || string(errOut) != "err" || asked != 0 {
		t.Errorf("exit code 3: got %q, %q, %v, timeout %d", out, errOut, err, asked)
	}
	fails = status.Error(codes.DeadlineExceeded, "slow")
	if _, _, err = c.ExecSync(t.Context(), "id", []string{"sleep"}, time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the timeout: %v, want context.DeadlineExceeded", err)
	}
}

func TestEventsThatTheRuntimeDoesNotHave(t *testing.T) {
	c := connected(t, &scripted{})
	err := c.GetContainerEvents(t.Context(), make(chan *runtimeapi.ContainerEventResponse), nil)
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v, want Unimplemented", err)
	}
}

// eventful is a runtime that sends two events and then ends the stream.
type eventful struct {
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (eventful) GetContainerEvents(_ *runtimeapi.GetEventsRequest, stream runtimeapi.RuntimeService_GetContainerEventsServer) error {
	for _, id := range []string{"a", "b"} {
		if err := stream.Send(&runtimeapi.ContainerEventResponse{ContainerId: id}); err != nil {
			return err
		}
	}
	return nil
}

func TestEvents(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, eventful{})
	go server.Serve(listener) //nolint:errcheck // it ends with the test
	t.Cleanup(server.Stop)
	c := client(t, socket)

	events, called := make(chan *runtimeapi.ContainerEventResponse, 2), false
	err = c.GetContainerEvents(t.Context(), events, func(runtimeapi.RuntimeService_GetContainerEventsClient) { called = true })
	if !errors.Is(err, io.EOF) || !called || len(events) != 2 {
		t.Errorf("got %v, connected %t, %d events; want EOF, true, 2", err, called, len(events))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.GetContainerEvents(ctx, make(chan *runtimeapi.ContainerEventResponse), nil); err == nil {
		t.Error("nobody reads the events, and the call ended without an error")
	}
}

func TestSecurityD1CredentialsOfPullsAreNotLogged(t *testing.T) {
	var said bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&said)
	t.Cleanup(func() { klog.SetOutput(os.Stderr) })
	c := connected(t, &scripted{pull: func(context.Context) error { return errors.New("refused") }})
	_, err := c.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "i"}, &runtimeapi.AuthConfig{Password: "hunter2"}, nil)
	if err == nil || err.Error() != "refused" {
		t.Errorf("got %v, want the runtime's words alone", err)
	}
	if strings.Contains(said.String()+fmt.Sprint(err), "hunter2") {
		t.Errorf("the password was said: %s, %v", said.String(), err)
	}
}

func TestEndpoint(t *testing.T) {
	there := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := firstExisting([]string{"/nowhere/a", there}); got != there {
		t.Errorf("detected %s, want the one that is there", got)
	}
	if got := firstExisting([]string{"/nowhere/a", "/nowhere/b"}); got != "/nowhere/a" {
		t.Errorf("detected %s, want the first", got)
	}
	for endpoint, want := range map[string]string{
		"unix:///run/x.sock": "unix:///run/x.sock", "/run/x.sock": "unix:///run/x.sock", "tcp://1.2.3.4:5": "", "x.sock": "",
	} {
		if got, err := endpointTarget(endpoint); got != want || (err == nil) != (want != "") {
			t.Errorf("target(%q) = %q, %v; want %q", endpoint, got, err, want)
		}
	}
}
