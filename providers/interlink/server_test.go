// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/plugin"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// realServer is the path at which `make interlink` builds interLink's own API server.
const realServer = "../../bin/interlink/interlink-api"

// needServer skips a test without interLink's own API server, unless it is required.
func needServer(t *testing.T) {
	t.Helper()
	needProgram(t, realServer)
}

// needProgram skips a test if one of interLink's programs is missing, unless the programs are required.
func needProgram(t *testing.T, program string) {
	t.Helper()
	if _, err := os.Stat(program); err == nil {
		return
	}
	if os.Getenv("VK_REQUIRE_INTERLINK") != "" {
		t.Fatalf("interLink's %s is not built: make interlink", filepath.Base(program))
	}
	t.Skipf("interLink's %s is not built: make interlink", filepath.Base(program))
}

// shortDir makes a directory with a path that is short enough for sockets in it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "il") //nolint:usetesting // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// startServer starts interLink's own API server between two sockets.
func startServer(t *testing.T, dir, sidecar string) (url string, stop func()) {
	t.Helper()
	socket := filepath.Join(dir, "api")
	os.Remove(socket)
	stop = startServerWith(t, dir, fmt.Sprintf("InterlinkAddress: unix://%s\nInterlinkPort: \"0\"\nSidecarURL: %s\nSidecarPort: \"0\"\nErrorsOnlyLogging: false\n", socket, sidecar))
	reached(t, "unix", socket)
	return "unix://" + socket, stop
}

// startServerWith starts interLink's own API server with a configuration.
func startServerWith(t *testing.T, dir, text string) (stop func()) {
	t.Helper()
	config := filepath.Join(dir, "InterLinkConfig.yaml")
	if err := os.WriteFile(config, []byte(text+"DataRootFolder: "+dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(filepath.Join(dir, "api.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(realServer)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "INTERLINKCONFIGPATH="+config), out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		out.Close()
	})
	t.Cleanup(stop)
	return stop
}

// reached waits until a process listens at the address.
func reached(t *testing.T, network, address string) {
	t.Helper()
	eventually(t, "somebody to listen on "+address, func() bool {
		conn, err := net.DialTimeout(network, address, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// eventually waits until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("it did not come: %s", what)
		}
	}
}

// startPlugin runs our plugin with a provider, until the test ends or stop is called.
func startPlugin(t *testing.T, dir string, runner cli.Provider, config string) (url string, stop func()) {
	t.Helper()
	url = "unix://" + filepath.Join(dir, "plugin")
	_, stop = startPluginWith(t, plugin.Options{Runner: runner, RunnerConfig: config, StateDir: filepath.Join(dir, "state"), Listen: url})
	return url, stop
}

// startPluginWith runs our plugin, until the test ends or stop is called.
func startPluginWith(t *testing.T, o plugin.Options) (at net.Addr, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended, listening := make(chan error, 1), make(chan net.Addr, 1)
	o.Listening = func(a net.Addr) { listening <- a }
	go func() { ended <- plugin.Run(ctx, o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the plugin ended with: %v", err)
		}
	})
	t.Cleanup(stop)
	select {
	case at = <-listening:
	case err := <-ended:
		ended <- nil
		t.Fatalf("the plugin does not start: %v", err)
	}
	return at, stop
}

// goroutines returns a provider whose containers are goroutines.
func goroutines(cloud *inprocess.Cloud) cli.Provider {
	return cli.Provider{Name: "inprocess", New: func(_ context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
		return inprocess.Open(cloud, inprocess.Objects{ConfigMaps: in.ConfigMaps, Secrets: in.Secrets}), nil
	}}
}
