// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// agent is a real Nomad agent. Server and client are one process unless its fields say otherwise.
type agent struct {
	dir, url string
	port     int
	token    string // with all rights
	least    string // a token with the policy of the README
	acl      bool
	server   bool       // the agent has no client
	joins    *agent     // the server of an agent that is only a client
	tls      *authority // nil: without TLS
	extra    string     // configuration
	chroot   string     // the directory with the files of containers; default: the programs of links
	command  *exec.Cmd
	ended    chan struct{}
}

var (
	theAgent     = &agent{acl: true}
	theAgentOnce sync.Once
	errTheAgent  error
)

// sharedAgent returns the agent of all tests that leave its configuration unchanged.
func sharedAgent(t *testing.T) *agent {
	t.Helper()
	needAgent(t)
	theAgentOnce.Do(func() {
		dir, err := os.MkdirTemp("", "vknomad") //nolint:usetesting // sockets below it have short names, and all tests share one
		if err == nil {
			theAgent.dir = dir
			err = theAgent.start()
		}
		errTheAgent = err
	})
	if errTheAgent != nil {
		t.Fatalf("start the agent: %v\n%s", errTheAgent, theAgent.log())
	}
	return theAgent
}

func needAgent(t *testing.T) {
	t.Helper()
	if why := whyNoAgent(); why != "" {
		if os.Getenv(requireAgent) == "1" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
}

// newAgent starts an agent for a single test.
func newAgent(t *testing.T, a agent) *agent {
	t.Helper()
	needAgent(t)
	dir, err := os.MkdirTemp("", "vknomad") //nolint:usetesting // sockets below it have short names, and all tests share one
	if err != nil {
		t.Fatal(err)
	}
	a.dir = dir
	t.Cleanup(a.stop)
	if err := a.start(); err != nil {
		t.Fatalf("start the agent: %v\n%s", err, a.log())
	}
	return &a
}

func (a *agent) log() string {
	data, _ := os.ReadFile(filepath.Join(a.dir, "log"))
	return string(data[max(0, len(data)-4000):])
}

// start starts the agent, on the same ports if it ran before, and waits until the agent accepts jobs.
func (a *agent) start() error {
	if a.port == 0 {
		if err := a.prepare(); err != nil {
			return err
		}
	}
	out, err := os.OpenFile(filepath.Join(a.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	a.command = exec.Command(agentPath, "agent", "-config", filepath.Join(a.dir, "agent.hcl"), "-config", filepath.Join(a.dir, "extra.hcl"))
	a.command.Stdout, a.command.Stderr = out, out
	if err := a.command.Start(); err != nil {
		return err
	}
	a.ended = make(chan struct{})
	go func() { _ = a.command.Wait(); close(a.ended) }()
	if a.joins != nil {
		a.token, a.least = a.joins.token, a.joins.least
		return a.until(func() bool { return a.joins.clientReady(filepath.Base(a.dir)) })
	}
	if a.acl && a.token == "" {
		var bootstrap nomadapi.ACLToken
		if err := a.until(func() bool { return a.do(http.MethodPost, "/v1/acl/bootstrap", nil, &bootstrap) == nil }); err != nil {
			return err
		}
		a.token = bootstrap.SecretID
		if a.least, err = a.leastToken(); err != nil {
			return err
		}
	}
	return a.until(func() bool {
		// Variables work later than jobs, because the key that encrypts them is made last.
		const probe = "/v1/var/ready"
		if a.do(http.MethodPut, probe, nomadapi.Variable{Path: "ready", Items: nomadapi.VariableItems{"is": "yes"}}, nil) != nil {
			return false
		}
		return a.do(http.MethodDelete, probe, nil, nil) == nil && (a.server || a.clientReady(filepath.Base(a.dir)))
	})
}

// clientReady reports whether the client with this name accepts jobs.
func (a *agent) clientReady(name string) bool {
	var nodes []*nomadapi.NodeListStub
	if a.do(http.MethodGet, "/v1/nodes", nil, &nodes) != nil {
		return false
	}
	return slices.ContainsFunc(nodes, func(n *nomadapi.NodeListStub) bool {
		d, raw := n.Drivers["exec"], n.Drivers["raw_exec"]
		return n.Name == name && n.Status == "ready" && d != nil && d.Healthy && raw != nil && raw.Healthy
	})
}

// prepare chooses ports and writes the files of the agent.
func (a *agent) prepare() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	a.port = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	a.url = fmt.Sprintf("http://127.0.0.1:%d", a.port)
	if a.tls != nil {
		a.url = fmt.Sprintf("https://127.0.0.1:%d", a.port)
	}
	busybox, err := exec.LookPath("busybox")
	if err == nil {
		err = os.MkdirAll(filepath.Join(a.dir, "bin"), 0o755)
	}
	if err != nil {
		return err
	}
	data, err := os.ReadFile(busybox)
	for _, name := range links {
		if err == nil {
			err = os.WriteFile(filepath.Join(a.dir, "bin", name), data, 0o755)
		}
	}
	if err == nil {
		err = os.Chmod(a.dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(a.dir, "agent.hcl"), []byte(a.configuration()), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(a.dir, "extra.hcl"), []byte(a.extra), 0o600)
	}
	return err
}

// until waits for a condition of the agent.
func (a *agent) until(ok func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for !ok() {
		select {
		case <-a.ended:
			return errors.New("the agent has ended")
		case <-ctx.Done():
			return errors.New("the agent is not ready after a minute")
		default:
		}
		sleep(ctx, 100*time.Millisecond)
	}
	return nil
}

// kill ends the agent. The tasks of the agent go on.
func (a *agent) kill() {
	if a.command == nil {
		return
	}
	_ = a.command.Process.Kill()
	<-a.ended
}

// stop ends the agent and removes its files. Its tasks end with the test process.
func (a *agent) stop() {
	if a.dir == "" {
		return
	}
	a.kill()
	if ran, err := os.OpenFile(os.Getenv(allocations), os.O_APPEND|os.O_WRONLY, 0); err == nil {
		entries, _ := os.ReadDir(filepath.Join(a.dir, "data/alloc"))
		for _, e := range entries {
			fmt.Fprintln(ran, e.Name())
		}
		_ = ran.Close()
	}
	unmountBelow(a.dir)
	_ = os.RemoveAll(a.dir)
}

// do makes a request to the agent, with all rights.
func (a *agent) do(method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("X-Nomad-Token", a.token)
	answer, err := a.http().Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var data bytes.Buffer
	if _, err = data.ReadFrom(answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNoContent {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, data.String())
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data.Bytes(), out)
}

// http returns a client that the agent trusts.
func (a *agent) http() *http.Client {
	if a.tls == nil {
		return http.DefaultClient
	}
	return &http.Client{Transport: &http.Transport{DialTLSContext: config.TLSFiles(a.tls.client()).DialTLS, DisableKeepAlives: true}}
}

// config returns a configuration for this agent, with the rights of the README.
func (a *agent) config(cluster string) Config {
	c := Config{
		Address: a.url, ClusterName: cluster, Drivers: []string{DriverExec, DriverRawExec}, Token: config.Literal(a.least),
		RestartDelay: duration(time.Second),
	}
	if a.tls != nil {
		c.TLS = a.tls.client()
	}
	return c
}
