// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"bufio"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"testing"
	"time"
)

// hostVariable makes this test binary start the shared API server, write the address and wait.
const hostVariable = "TESTAPI_WRITE_HOST"

func TestClusterEndsWithItsTestProcess(t *testing.T) {
	if os.Getenv(hostVariable) != "" {
		_, _ = os.Stdout.WriteString("\n" + Start(t).Config.Host + "\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		return
	}
	requireBinary(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), hostVariable+"=1", kubeconfigVariable+"=")
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var server *url.URL
	for lines := bufio.NewScanner(out); server == nil && lines.Scan(); {
		if u, err := url.Parse(lines.Text()); err == nil && u.Scheme == "https" {
			server = u
		}
	}
	if server == nil {
		t.Fatalf("the other test process told no address: %v", child.Wait())
	}
	connection, err := net.Dial("tcp", server.Host)
	if err != nil {
		t.Fatalf("connect to the other process's API server: %v", err)
	}
	defer connection.Close()

	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	if err := connection.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := connection.Read(make([]byte, 1)); os.IsTimeout(err) {
		t.Fatal("the API server still serves a minute after its test process was killed")
	}
	if again, err := net.Dial("tcp", server.Host); err == nil {
		again.Close()
		t.Error("the API server still listens after it closed its connections")
	}
}
