// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

const (
	demoFile = "VK_NOMAD_DEMO"      // the configuration of the provider, which TestDemo writes
	demoRoot = "VK_NOMAD_DEMO_ROOT" // the files of containers
)

// These descriptors come to TestDemo from the process that made its namespaces.
const (
	demoListener = 3 + iota
	demoStop
)

// demoDescriptors returns a listener in the network of this machine, and a pipe that is closed when this process
// is told to stop.
func demoDescriptors() ([]*os.File, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	listener, err := l.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	stop, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { <-signals; _ = end.Close() }()
	return []*os.File{listener, stop}, nil
}

// TestDemo runs an agent until it is told to stop, for hack/test-vk-test-set.sh. The machine reaches the agent
// through a listener from outside the namespaces of the tests.
func TestDemo(t *testing.T) {
	path := os.Getenv(demoFile)
	if path == "" {
		t.Skip("this is no test: run hack/test-vk-test-set.sh")
	}
	a := newAgent(t, agent{acl: true, chroot: os.Getenv(demoRoot)})
	l, err := net.FileListener(os.NewFile(demoListener, "listener"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go relay(from, fmt.Sprintf("127.0.0.1:%d", a.port))
		}
	}()
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\naddress: http://%s\nclusterID: demo\ndrivers: [%s]\ntoken: {file: %s}\n",
		APIVersion, Kind, l.Addr(), DriverExec, path+".token")
	if err := errors.Join(os.WriteFile(path+".token", []byte(a.least), 0o600), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.NewFile(demoStop, "stop"))
	_ = l.Close()
	<-ended
}

// relay copies between two connections in both directions until one of them ends.
func relay(from net.Conn, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(from, to)
}

// chrootOf returns the agent's setting that gives containers the files of a directory.
func chrootOf(root string) (out string) {
	dirs, _ := filepath.Glob(filepath.Join(root, "*"))
	for _, dir := range dirs {
		out += fmt.Sprintf("    %q = %q\n", dir, "/"+filepath.Base(dir))
	}
	return out
}
