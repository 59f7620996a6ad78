// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
)

const question = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01"

func TestNameserversAreAskedInTurn(t *testing.T) {
	needInternet(t)
	silent, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := testConfig()
	c.Nameservers = []netip.AddrPort{
		silent.LocalAddr().(*net.UDPAddr).AddrPort(), // receives the query and does not answer; there is no TCP
		netip.MustParseAddrPort("127.0.0.1:1"),       // no listener
		netip.MustParseAddrPort(internetAddress + ":53"),
	}
	d := startDaemon(t, &c)
	g := d.guest("ns/a", "10.88.0.5")
	ask := func() time.Duration {
		t.Helper()
		start := time.Now()
		got, err := g.exchange(testGateway.String(), dnsPort, question)
		if err != nil || got != string(nameAnswer([]byte(question))) {
			t.Fatalf("%q, %v", got, err)
		}
		return time.Since(start)
	}
	ask()
	if took := ask(); took > nextTimeout {
		t.Errorf("the second question waited %v for a nameserver that is known to be silent", took)
	}
	got, err := io.ReadAll(g.mustDial(testGateway.String(), dnsPort))
	if err != nil || string(got) != hello {
		t.Errorf("by TCP: %q, %v", got, err)
	}
}

// TestSecurityK3AnsweredQuestionsEndTheirFlows checks that an answered DNS question ends its flow. Programs ask
// from a new port each time, and a pod needs its limited number of flows for other connections.
func TestSecurityK3AnsweredQuestionsEndTheirFlows(t *testing.T) {
	needInternet(t)
	c := testConfig()
	d := startDaemon(t, &c)
	g := d.guest("ns/a", "10.88.0.5")
	for range 20 {
		if _, err := g.exchange(testGateway.String(), dnsPort, question); err != nil {
			t.Fatal(err)
		}
	}
	flows := &d.network.findPod([4]byte{10, 88, 0, 5}).flows.n
	for begin := time.Now(); flows.Load() > 0; <-time.After(20 * time.Millisecond) {
		if time.Since(begin) > dnsIdle-time.Second {
			t.Fatalf("%d flows are there after %v", flows.Load(), time.Since(begin))
		}
	}
}
