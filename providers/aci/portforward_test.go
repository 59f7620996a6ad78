// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// TestPortForward connects to the address of the pod.
func TestPortForward(t *testing.T) {
	a := testAzure(t)
	p := a.provider(t, nil).run(t)
	pod := programPod("u-1", stays)
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	mine, theirs := net.Pipe()
	if err := p.PortForward(t.Context(), "ns", pod.Name, 8080, theirs); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "has no address") {
		t.Errorf("a pod without an address: %v", err)
	}
	if _, err := mine.Write([]byte{0}); err == nil {
		t.Error("the stream is open")
	}
	pod.Status.PodIP = "10.1.2.3" // goroutines have none
	asked := ""
	p.driver.dial = func(_ context.Context, _, address string) (net.Conn, error) {
		asked = address
		return nil, errors.New("no route to host")
	}
	mine, theirs = net.Pipe()
	err := p.driver.Forward(t.Context(), service.Target[instance]{Pod: pod}, 8080, theirs)
	if asked != "10.1.2.3:8080" || err == nil || !strings.Contains(err.Error(), "a route from this machine") {
		t.Errorf("connected to %s, without a route: %v", asked, err)
	}
	if _, err := mine.Write([]byte{0}); err == nil {
		t.Error("the stream is open")
	}
}
