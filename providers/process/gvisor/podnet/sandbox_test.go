// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"net"
	"strings"
	"testing"
)

func TestSandboxesHaveANetwork(t *testing.T) {
	needInternet(t)
	eachUser(t, func(t *testing.T, u user) {
		p := startProcess(t, u, testConfig())
		a := p.sandbox("a", "10.88.0.5")
		b := p.sandbox("b", "10.88.0.6")
		for _, test := range []struct{ what, want string }{
			{"dial tcp " + internetAddress + ":13", hello},
			{"dial udp " + internetAddress + ":7 data", "data"},
			{"dial tcp 10.88.0.6:13", hello},
			{"dial udp 10.88.0.6:7 data", "data"},
			{"dial tcp 10.98.7.7:443 data", "data"}, // a service
			{"ping 10.88.0.6", "pong"},
			{"ping 10.88.0.1", "pong"},
			{"lookup udp name.example", "[192.0.2.1]"},
		} {
			if got, err := a.exec(strings.Fields(test.what)...); err != nil || got != test.want {
				t.Errorf("%s: %q, %v, want %q", test.what, got, err, test.want)
			}
		}
		second := a.container("c") // of the same sandbox
		for _, address := range []string{"127.0.0.1:13", "10.88.0.5:13", internetAddress + ":13"} {
			if got, err := second.exec("dial", "tcp", address); err != nil || got != hello {
				t.Errorf("another container: %s: %q, %v, want %q", address, got, err, hello)
			}
		}
		_, answer, stream := askStream(t, p.socket, Request{Op: OpDial, Address: b.pod.Address, Port: echoPort})
		if answer.Error != "" {
			t.Fatal(answer.Error)
		}
		checkEcho(t, stream.(*net.UnixConn), 1<<20)
	})
}
