// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// onInterLink is an agent with pods that go to interLink's own API server, and from there to this project's
// plugin with provider mock: this project's agent with provider interlink, or interLink's own virtual kubelet.
// Server and plugin are not counted.
type onInterLink struct {
	*ours
	folder string // of interLink's programs
	plugin string // virtual-kubelet
	theirs bool
}

func newOnInterLink(o *ours, cfg config, name string) (agent, error) {
	a := onInterLink{o, filepath.Join(cfg.bin, "interlink"), filepath.Join(cfg.bin, "virtual-kubelet"), name == "interlink-vk"}
	o.as = name
	for _, program := range []string{"interlink-api", "virtual-kubelet"} {
		if _, err := os.Stat(filepath.Join(a.folder, program)); err != nil {
			return nil, fmt.Errorf("%s needs interLink's programs, which make bin/interlink/version builds: %w", name, err)
		}
	}
	return a, nil
}

func (a onInterLink) describeSettings() string {
	if a.theirs {
		return "interLink's virtual kubelet of July 2025, all else by default; the same server and plugin"
	}
	return "virtual-kubelet --provider=interlink, all else by default; interLink's API server of July 2025, and virtual-kubelet interlink-plugin --runner=mock"
}

// interLinkProvider is the configuration of provider interlink.
const interLinkProvider = `apiVersion: interlink.virtual-kubelet.io/v1alpha1
kind: InterLinkProviderConfiguration
url: unix://%s
`

// interLinkServer is the configuration of interLink's API server, interLinkNode the configuration of its virtual
// kubelet.
const (
	interLinkServer = `InterlinkAddress: unix://%[1]s/api
InterlinkPort: "0"
SidecarURL: unix://%[1]s/plugin
SidecarPort: "0"
ErrorsOnlyLogging: true
DataRootFolder: %[1]s
`
	interLinkNode = `InterlinkURL: unix://%s
InterlinkPort: "0"
Namespace: default
Resources: {CPU: "1000", Memory: 1Ti, Pods: "10000"}
`
)

// interLink is interLink's server with a plugin below it and a proxy before it.
type interLink struct {
	*proxy
	dir      string
	programs []*process // in the order in which they were started
}

func (a onInterLink) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	i, err := a.startServer(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("start interLink's server: %w", err)
	}
	var node *process
	if a.theirs {
		node, err = a.startTheirs(ctx, m, i, prefix)
	} else {
		file := filepath.Join(i.dir, "provider.yaml")
		if err = writeConfig(file, fmt.Sprintf(interLinkProvider, i.edgePath())); err == nil {
			node, err = a.startWith(ctx, m, s, prefix, []string{"--provider=interlink", "--provider-config=" + file})
		}
	}
	if err != nil {
		i.stop()
		return nil, err
	}
	node.backend = i
	return node, nil
}

// edgePath returns the path of the proxy's socket.
func (i *interLink) edgePath() string { return filepath.Join(i.dir, "edge") }

// startServer starts plugin, server and proxy, each on a socket in a folder with a short name, and returns when they answer.
func (a onInterLink) startServer(ctx context.Context, m *machine) (_ *interLink, err error) {
	dir, err := os.MkdirTemp("", "bench-il-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	i := &interLink{dir: dir}
	defer func() {
		if err != nil {
			i.stop()
		}
	}()
	config := filepath.Join(dir, "server.yaml")
	if err := writeConfig(config, fmt.Sprintf(interLinkServer, dir)); err != nil {
		return nil, err
	}
	plugin := exec.Command(a.plugin, "interlink-plugin", "--runner=mock", "--listen=unix://"+dir+"/plugin", "--state-dir="+dir+"/state") //nolint:noctx // it is ended by stop, gently
	server := exec.Command(filepath.Join(a.folder, "interlink-api"))                                                                     //nolint:noctx // likewise
	server.Env = append(server.Environ(), "INTERLINKCONFIGPATH="+config)
	for name, cmd := range map[string]*exec.Cmd{"plugin": plugin, "api": server} {
		p, err := startProgram("interLink "+name, cmd, m.cfg.logs)
		if err != nil {
			return nil, err
		}
		i.programs = append(i.programs, p)
		if err := awaitSocket(ctx, filepath.Join(dir, name), p); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", i.edgePath()) //nolint:noctx // a bind on this machine does not block
	if err != nil {
		return nil, fmt.Errorf("listen for the proxy of interLink's server: %w", err)
	}
	i.proxy = startProxy(l, "unix", filepath.Join(dir, "api"))
	return i, nil
}

// awaitSocket waits until a program listens.
func awaitSocket(ctx context.Context, socket string, p *process) error {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.done:
			return p.endReason()
		default:
		}
		if err := waitFor(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s to listen: %w: %s", p.name, err, p.said)
		}
	}
}

// stop ends server and plugin.
func (i *interLink) stop() {
	if i.proxy != nil {
		i.proxy.stop()
	}
	for _, p := range i.programs {
		p.stop()
	}
	_ = os.RemoveAll(i.dir)
}

// startTheirs starts interLink's own virtual kubelet. It starts its informers concurrently with the code that creates them. If it starts
// them too early it never sees a pod, so it is restarted.
func (a onInterLink) startTheirs(ctx context.Context, m *machine, i *interLink, prefix string) (*process, error) {
	file := filepath.Join(i.dir, "node.yaml")
	if err := writeConfig(file, fmt.Sprintf(interLinkNode, i.edgePath())); err != nil {
		return nil, err
	}
	for range 20 {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(filepath.Join(a.folder, "virtual-kubelet")) //nolint:noctx // it is ended by stop, gently
		cmd.Env = append(cmd.Environ(), "CONFIGPATH="+file, "NODENAME="+prefix, "KUBECONFIG="+m.kubeconfig, "POD_IP=127.0.0.1",
			"KUBELET_URL=127.0.0.1", "KUBELET_PORT="+strconv.Itoa(port))
		p, err := m.startNodes(ctx, a.agentName(), cmd, []string{prefix})
		if err != nil {
			return nil, err
		}
		if awaitPodCache(ctx, p) {
			return p, nil
		}
		p.stop()
	}
	return nil, fmt.Errorf("%s does not begin to look at pods", a.agentName())
}

// awaitPodCache reports whether the program begins to watch pods within some seconds.
func awaitPodCache(ctx context.Context, p *process) bool {
	for range 50 {
		if strings.Contains(p.said.String(), "Pod cache in-sync") {
			return true
		}
		if waitFor(ctx, 100*time.Millisecond) != nil {
			return false
		}
	}
	return false
}
