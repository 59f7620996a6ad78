// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/netns"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// machine is the state directory of one test.
type machine struct{ dir string }

func newMachine() (machine, error) {
	dir, err := os.MkdirTemp("", "process-contract-")
	return machine{dir}, err
}

// running returns the running containers of a pod, by name.
func (m machine) running(pod *corev1.Pod) (map[string][]string, error) {
	dirs, err := filepath.Glob(filepath.Join(m.dir, "containers", "*"))
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, dir := range dirs {
		var config struct{ Labels map[string]string }
		data, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err == nil {
			err = json.Unmarshal(data, &config)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // the container is being created or removed
		} else if err != nil {
			return nil, err
		}
		if config.Labels["io.kubernetes.pod.uid"] != string(pod.UID) {
			continue
		}
		if s, err := shim.ReadState(dir); err == nil && s.Init.Alive() && !s.Ended() {
			name := config.Labels["io.kubernetes.container.name"]
			found[name] = append(found[name], dir)
		}
	}
	return found, nil
}

func (m machine) instances(pod *corev1.Pod) (n int, err error) {
	found, err := m.running(pod)
	for _, dirs := range found {
		n = max(n, len(dirs))
	}
	return n, err
}

func (m machine) kill(pod *corev1.Pod, container string) error {
	found, err := m.running(pod)
	if err != nil {
		return err
	}
	if len(found[container]) != 1 {
		return fmt.Errorf("container %s of pod %s runs %d times", container, pod.Name, len(found[container]))
	}
	return shim.Signal(context.Background(), found[container][0], syscall.SIGKILL)
}

// lose kills the shims of a pod before its containers, so that no process can report how the containers ended.
func (m machine) lose(pod *corev1.Pod) error {
	found, err := m.running(pod)
	if err != nil {
		return err
	}
	for _, dirs := range found {
		for _, dir := range dirs {
			s, err := shim.ReadState(dir)
			if err != nil {
				return err
			}
			for _, p := range []shim.Process{s.Shim, s.Init} {
				if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
					return err
				}
			}
		}
	}
	return nil
}

// left returns the remaining files of the node and its unpacked images.
func (m machine) left() (map[string][]string, error) {
	left := map[string][]string{}
	files, err := providertest.FilesBelow(m.dir)
	for _, file := range files {
		image, below := strings.CutPrefix(file, "images/")
		switch {
		case !below:
			left["files"] = append(left["files"], file)
		case !strings.Contains(image, "/"):
			left["images"] = append(left["images"], image)
		}
	}
	return left, err
}

// kept holds the rules for the results of left.
var kept = map[string]providertest.Kept{
	"files":  {Most: 2, Rule: "empty folders for images and for the messages of containers, one each for a node"},
	"images": {Most: 1, Rule: "what an image is unpacked to, one for each image of a pod; imageGC removes unused ones when the disk is short"},
}

// close kills all containers that a check left, and removes the directory.
func (m machine) close() error {
	dirs, err := filepath.Glob(filepath.Join(m.dir, "containers", "*"))
	for _, dir := range dirs {
		if s, err := shim.ReadState(dir); err == nil && !s.Ended() {
			_ = shim.Kill(context.Background(), dir) // it may have ended since, and nothing is written any more
		}
	}
	owner := sha256.Sum256([]byte(filepath.Join(m.dir, "pods"))) // podruntime's name for the cgroups of a node
	removeCgroups(hex.EncodeToString(owner[:4]))
	namespaces, bad := filepath.Glob(filepath.Join(m.dir, "sandboxes", "*", "netns"))
	err = errors.Join(err, bad)
	for _, path := range namespaces { // a provider that ended during a removal leaves the mount
		err = errors.Join(err, netns.Remove(path))
	}
	return errors.Join(err, os.RemoveAll(m.dir))
}

// TestContract runs the contract of providers with real containers.
func TestContract(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("containers of another user than this one need root: run the test as root, as CI does")
	}
	images, err := imageDir()
	if err != nil {
		t.Fatal(images, err)
	}
	providertest.Run(t, contract(images))
}

// contract returns the harness of the contract, with containers of these images.
func contract(images string) providertest.Harness {
	return providertest.Harness{
		Backend: func(_ context.Context, env providertest.Env) (*providertest.Backend, error) {
			m, err := newMachine()
			if err != nil {
				return nil, err
			}
			return &providertest.Backend{
				Open: func(ctx context.Context) (node.PodLifecycleHandler, error) {
					return process.New(ctx, cli.ProviderInput{ProviderConfig: env.ProviderConfig, InternalIP: "127.0.0.1", KubeClusterDomain: "cluster.local"},
						testConfig(m.dir, images))
				},
				Close:     m.close,
				Left:      m.left,
				Kept:      kept,
				Instances: m.instances,
				Kill:      m.kill,
				Lose:      m.lose,
			}, nil
		},
		Container: func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Command, c.Args = "contract", []string{"/bin/contractprogram"}, p.Args()
			return nil
		},
		Command: func(p program.Program) ([]string, error) {
			return append([]string{"/bin/contractprogram"}, p.Args()...), nil
		},
		Patience: time.Minute, Every: 50 * time.Millisecond, Parallel: 8, Many: 8,
		Subject:  subject(),
		Unproven: unproven,
	}
}

// subject names the subject of the test: gVisor is the default of the provider.
func subject() providertest.Subject {
	s := providertest.Subject{Provider: "process", Backend: "containers of gVisor, as root"}
	if isolation := testConfig("", "").Isolation; isolation != process.IsolationGVisor {
		s.Backend, s.Variant = "containers of "+isolation+", as root", isolation
	}
	return s
}

// unproven are the features that the contract does not prove here: they need more than one machine and a daemon,
// or have no effect that a container can observe.
var unproven = map[capability.Feature]string{
	capability.InPlaceResize:    "no check of the contract changes a pod that runs; podruntime's tests do, and limits_test.go sees the limits",
	capability.CertificateFiles: "no check of the contract has certificates; those of podruntime's volumes do, and test/integration with an API server",
	capability.PersistentVolume: "no check of the contract has PersistentVolumes; those of podruntime's volumes do, and test/integration with an API server",
	capability.TokenVolumes:     "no check of the contract has tokens; those of podruntime's volumes do",
	capability.ImageVolumes:     "no check of the contract knows what is in an image; imagevolume_test.go does",
	capability.MountPropagation: "what it does is seen by a container that may mount, and by the machine",
	capability.EnvFiles:         "no program of the contract writes a file of variables",
	capability.HostPorts:        "no check of the contract asks the machine's ports; TestHostPortLeadsToThePod does",
	capability.HostPortMapping:  "as host ports",
	capability.SELinux:          "the kernel has no SELinux: the field is without effect, as the declaration says",
	capability.WindowsOptions:   "they are without effect for containers of Linux",
}
