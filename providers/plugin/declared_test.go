// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
)

// bare is a provider without abilities.
type bare struct{ node.PodLifecycleHandler }

// liar is a fake plugin: it answers the handshake with hello, and other requests with its functions.
type liar struct {
	rpc.UnimplementedProviderServer
	hello    atomic.Pointer[rpc.HandshakeResponse]
	complete atomic.Bool
}

func (l *liar) Handshake(context.Context, *rpc.HandshakeRequest) (*rpc.HandshakeResponse, error) {
	if l.hello.Load() == nil {
		return nil, status.Error(codes.Unimplemented, "unknown service")
	}
	return l.hello.Load(), nil
}

func (l *liar) Alive(context.Context, *rpc.AliveRequest) (*rpc.AliveResponse, error) {
	return &rpc.AliveResponse{Complete: l.complete.Load()}, nil
}

func (l *liar) GetPod(context.Context, *rpc.PodName) (*rpc.PodAnswer, error) {
	return nil, status.Error(codes.NotFound, "not here")
}

// GetPods sends a list that proves nothing about missing pods.
func (l *liar) GetPods(_ *rpc.GetPodsRequest, s rpc.Provider_GetPodsServer) error {
	return s.Send(&rpc.PodsAnswer{})
}

// GetContainerLogs sends a log that is cut in the middle.
func (l *liar) GetContainerLogs(_ *rpc.LogsRequest, s rpc.Provider_GetContainerLogsServer) error {
	_ = s.Send(&rpc.Chunk{})
	_ = s.Send(&rpc.Chunk{Data: []byte("half a li")})
	return status.Error(codes.Unavailable, "cut")
}

// RunInContainer ends without an exit code.
func (l *liar) RunInContainer(s rpc.Provider_RunInContainerServer) error {
	return s.Send(&rpc.SessionOutput{Output: &rpc.SessionOutput_Stdout{Stdout: []byte("out")}})
}

func hello(abilities ...rpc.Ability) *rpc.HandshakeResponse {
	return &rpc.HandshakeResponse{ProtocolVersion: 1, Name: "liar", Instance: "1", Abilities: abilities}
}

func lies(t *testing.T, first *rpc.HandshakeResponse) (l *liar, endpoint string, server func() *grpc.Server) {
	t.Helper()
	socket := shortDir(t) + "/s"
	l = &liar{}
	l.hello.Store(first)
	server = func() *grpc.Server {
		listener, err := net.Listen("unix", socket)
		if err == nil {
			err = os.Chmod(socket, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		s := grpc.NewServer()
		rpc.RegisterProviderServer(s, l)
		go func() { _ = s.Serve(listener) }()
		t.Cleanup(s.Stop)
		return s
	}
	return l, "unix://" + socket, server
}

func TestWireOldVersion(t *testing.T) {
	old := hello()
	old.ProtocolVersion = 0
	unknown := hello()
	unknown.Declaration = &rpc.Declaration{Has: []*rpc.FeatureNote{{Feature: "Teleport"}}}
	for name, tt := range map[string]struct {
		hello *rpc.HandshakeResponse
		want  []string
	}{
		"an old plugin":      {old, []string{"plugin liar speaks version 0", "this virtual-kubelet version 1", "update"}},
		"another service":    {nil, []string{"does not speak virtualkubelet.provider.v1"}},
		"an unknown feature": {unknown, []string{`declares the feature "Teleport"`, "docs/reports/support.md"}},
		"objects, no way":    {hello(rpc.Ability_ABILITY_POD_OBJECTS), []string{"ABILITY_POD_OBJECTS without ABILITY_LOOKUPS"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, endpoint, server := lies(t, tt.hello)
			server()
			config := Config{Endpoint: endpoint}
			config.StartTimeout.Duration = 200 * time.Millisecond
			_, err := begun(t, config)
			contains(t, err, append(tt.want, endpoint)...)
		})
	}
}

func TestWireDeclaresWhatItLacks(t *testing.T) {
	_, endpoint, server := lies(t, hello(rpc.Ability_ABILITY_ATTACH, rpc.Ability_ABILITY_PING))
	server()
	p := connectedTo(t, endpoint)
	contains(t, p.AttachToContainer(t.Context(), "default", "web", "c", &console{}), "plugin liar declares a method that it lacks", "AttachToContainer")
	contains(t, ping(t, p), "plugin liar declares a method that it lacks", "Ping")
	contains(t, p.CreatePod(t.Context(), pod("web", "u1")), "plugin liar declares a method that it lacks", "CreatePod")
	err := p.RunInContainer(t.Context(), "default", "web", "c", []string{"true"}, &console{})
	contains(t, err, "plugin liar has no exec")
	if !errdefs.IsInvalidInput(err) {
		t.Errorf("what is not declared: got %v, want invalid input", err)
	}

	_, endpoint, server = lies(t, hello(rpc.Ability_ABILITY_REPORTS))
	server()
	p = connectedTo(t, endpoint)
	eventually(t, "the node is not ready", func() bool { return ping(t, p) != nil })
	eventually(t, "and says why", func() bool {
		err := ping(t, p)
		return err != nil && errText(err, "reports of pods", "declares a method that it lacks")
	})
}

func TestWireCutStreams(t *testing.T) {
	_, endpoint, server := lies(t, hello(rpc.Ability_ABILITY_LOGS, rpc.Ability_ABILITY_EXEC))
	server()
	p := connectedTo(t, endpoint)
	log, err := p.GetContainerLogs(t.Context(), "default", "web", "c", api.ContainerLogOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	data, err := io.ReadAll(log)
	contains(t, err, "cut")
	if string(data) != "half a li" {
		t.Errorf("log: got %q", data)
	}
	c := &console{}
	contains(t, p.RunInContainer(t.Context(), "default", "web", "c", []string{"true"}, c), "without an exit code")
	if c.out.String() != "out" {
		t.Errorf("exec: got %q", c.out.String())
	}

	process := startProcess(t)
	real := connectedTo(t, process.endpoint())
	if err := real.CreatePod(t.Context(), pod("web", "u1")); err != nil {
		t.Fatal(err)
	}
	var follow io.ReadCloser
	eventually(t, "the log is there", func() bool {
		follow, err = real.GetContainerLogs(t.Context(), "default", "web", "c", api.ContainerLogOpts{Follow: true})
		return err == nil
	})
	defer follow.Close()
	process.kill()
	_, err = io.ReadAll(follow)
	contains(t, err, "plugin")
}

// TestLessAfterRestart checks that the declaration at the registration of the node stays valid when a restarted
// plugin declares less.
func TestLessAfterRestart(t *testing.T) {
	l, endpoint, server := lies(t, hello(rpc.Ability_ABILITY_LOGS))
	first := server()
	p := connectedTo(t, endpoint)
	l.hello.Store(hello())
	first.Stop()
	server()
	eventually(t, "the node says what is missing", func() bool {
		err := ping(t, p)
		return err != nil && errText(err, "came back without", "ABILITY_LOGS", "restart virtual-kubelet")
	})
	l.hello.Store(hello(rpc.Ability_ABILITY_LOGS))
	eventually(t, "the node is ready", func() bool { return ping(t, p) == nil })
}

// TestIncompleteAnswerIsNoEvidence checks that the node does not believe a not-found of a plugin that has
// restarted and no longer knows all pods.
func TestIncompleteAnswerIsNoEvidence(t *testing.T) {
	l, endpoint, server := lies(t, hello(rpc.Ability_ABILITY_AUTHORITY))
	server()
	l.complete.Store(true)
	p := connectedTo(t, endpoint)
	eventually(t, "it answers for all pods", p.(node.PodAuthority).AnswersForAllPods)
	_, err := p.GetPod(t.Context(), "default", "web")
	contains(t, err, "does not know all its pods")
	if errdefs.IsNotFound(err) {
		t.Errorf("got %v, want an error without a kind", err)
	}
	eventually(t, "it answers for all pods", p.(node.PodAuthority).AnswersForAllPods)
	pods, err := p.GetPods(t.Context())
	contains(t, err, "does not know all its pods")
	if pods != nil {
		t.Errorf("got %v beside the error", names(pods))
	}
}

func errText(err error, all ...string) bool {
	for _, want := range all {
		if !strings.Contains(err.Error(), want) {
			return false
		}
	}
	return true
}

// declaring is a provider with the given declaration.
type declaring struct {
	bare
	declared capability.Declaration
}

func (d declaring) Capabilities() capability.Declaration { return d.declared }

// TestDeclarationPassesTheWire checks that a node has exactly the features that the plugin declares, also if the
// plugin gives no reasons.
func TestDeclarationPassesTheWire(t *testing.T) {
	for name, declared := range map[string]capability.Declaration{
		"nothing":                          capability.Only(),
		"all":                              capability.All(),
		"all but what is there by default": capability.All().Lacks("", capability.RunToCompletion, capability.HostPortMapping),
		"for a reason":                     capability.Only(capability.HostPorts).Lacks("why", capability.RunToCompletion),
	} {
		got := connectedTo(t, served(t, declaring{declared: declared})).(capability.Declarer).Capabilities()
		for _, f := range capability.Features() {
			if got.Has(f) != declared.Has(f) || got.Remark(f) != declared.Remark(f) {
				t.Errorf("%s: %s is there: %t %q, want %t %q", name, f, got.Has(f), got.Remark(f), declared.Has(f), declared.Remark(f))
			}
		}
	}
}
