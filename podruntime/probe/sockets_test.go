// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestTCP(t *testing.T) {
	l := listen(t)
	port := portIn(t, l.Addr().String())
	action := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(port)}}
	if got := asked(t, running("a"), action); got != "success: " {
		t.Error(got)
	}
	_ = l.Close()
	if got := asked(t, running("a"), action); !strings.HasSuffix(got, "connection refused") || !strings.HasPrefix(got, "failure: dial tcp 127.0.0.1:") {
		t.Error(got)
	}
	action.TCPSocket.Port = intstr.FromString("web")
	if got := asked(t, running("a"), action); got != `unknown: port "web" not found` {
		t.Error(got)
	}
}

// noMachine is a network in which pods cannot reach the host.
type noMachine struct{}

func (noMachine) HasPod(netip.Addr) bool { return false }

func (noMachine) DialPod(context.Context, netip.AddrPort) (net.Conn, error) {
	return nil, errors.New("there is no pod")
}

func (noMachine) CheckReachable(netip.Addr) error { return errors.New("pods do not reach the machine") }

// TestProbeReachesTheMachineForAPodInItsNetworkOnly: as with a kubelet, a probe may reach a server on the host's
// loopback interface only if the pod has hostNetwork and so reaches this server itself. Addresses that give a
// host its credentials stay refused.
func TestProbeReachesTheMachineForAPodInItsNetworkOnly(t *testing.T) {
	port := portIn(t, listen(t).Addr().String())
	for _, c := range []struct {
		hostNetwork bool
		host, want  string
	}{
		{true, "127.0.0.1", "success: "},
		{false, "127.0.0.1", "pods do not reach the machine"},
		{true, "169.254.169.254", "is a link-local or metadata address"},
	} {
		target := running("a")
		target.PodIPs, target.Pod.Spec.HostNetwork = []string{"192.0.2.1"}, c.hostNetwork
		o, output, err := New(Config{Pods: noMachine{}}).askContainer(t.Context(), &probe{spec: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: c.host, Port: intstr.FromInt(port)}}, TimeoutSeconds: 5,
		}}, target)
		if got := fmt.Sprintf("%s: %s", o, output); err != nil || !strings.Contains(got, c.want) {
			t.Errorf("hostNetwork %t, host %s: got %s, %v, want %s", c.hostNetwork, c.host, got, err, c.want)
		}
	}
}

// healthServer starts a server of the health service. It sends the user agents of its requests to the channel.
func healthServer(t *testing.T, opts ...grpc.ServerOption) (*health.Server, int, chan string) {
	t.Helper()
	agents := make(chan string, 20)
	l := listen(t)
	opts = append(opts, grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		agents <- strings.Join(md.Get("user-agent"), ",")
		return h(ctx, req)
	}))
	s := grpc.NewServer(opts...)
	hs := health.NewServer()
	grpc_health_v1.RegisterHealthServer(s, hs)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return hs, portIn(t, l.Addr().String()), agents
}

func TestGRPC(t *testing.T) {
	hs, port, agents := healthServer(t)
	hs.SetServingStatus("bad", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	ask := func(service *string) string {
		return asked(t, running("a"), corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: int32(port), Service: service}})
	}
	if got := ask(nil); got != "success: service healthy" {
		t.Error(got)
	}
	if got := <-agents; !strings.HasPrefix(got, "kube-probe/1.37 ") {
		t.Errorf("user agent %q", got)
	}
	if got := ask(ptr.To("bad")); got != `failure: service unhealthy (responded with "NOT_SERVING")` {
		t.Error(got)
	}
	if got := ask(ptr.To("none")); !strings.HasPrefix(got, "failure: error: health rpc probe failed: rpc error: code = NotFound") {
		t.Error(got)
	}
}

func TestGRPCWithTLS(t *testing.T) {
	https := httptest.NewTLSServer(nil)
	defer https.Close()
	_, port, _ := healthServer(t, grpc.Creds(credentials.NewServerTLSFromCert(&https.TLS.Certificates[0])))
	action := &corev1.GRPCAction{Port: int32(port), Mode: ptr.To(corev1.GRPCProbeModeTLS)}
	if got := asked(t, running("a"), corev1.ProbeHandler{GRPC: action}); got != "success: service healthy" {
		t.Error(got)
	}
}

func TestGRPCWithoutHealth(t *testing.T) {
	l := listen(t)
	s := grpc.NewServer()
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	defer func() { s.Stop(); <-done }()
	action := &corev1.GRPCAction{Port: int32(portIn(t, l.Addr().String()))}
	got := asked(t, running("a"), corev1.ProbeHandler{GRPC: action})
	if !strings.HasPrefix(got, "failure: error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ") {
		t.Error(got)
	}
}

func TestGRPCWithoutServer(t *testing.T) {
	l := listen(t)
	port := portIn(t, l.Addr().String())
	_ = l.Close()
	o, output, err := New(Config{}).askGRPC(t.Context(), &corev1.GRPCAction{Port: int32(port)}, running("a"), 100*time.Millisecond)
	if o != failure || err != nil || !strings.HasPrefix(output, `timeout: failed to connect service "127.0.0.1:`) ||
		!strings.HasSuffix(output, "within 100ms: context deadline exceeded") {
		t.Errorf("got %s %q, %v", o, output, err)
	}
}
