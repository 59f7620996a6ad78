// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	kwokModule = "sigs.k8s.io/kwok"
	// kwokPin is the folder of the module with the version of KWOK.
	kwokPin = "kwok"
)

// kwokOptions are the options of KWOK's own deployment files, with two exceptions: the stages are given with the
// options rather than by custom resources, and there is no server, because it would have no use.
const kwokOptions = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  cidr: 10.0.0.0/24
  manageAllNodes: true
  nodeLeaseDurationSeconds: 40
  nodeLeaseParallelism: 4
  podPlayStageParallelism: 4
  nodePlayStageParallelism: 4
  podsOnNodeSyncParallelism: 1
  enablePodsOnNodeSyncListPager: false
  enablePodsOnNodeSyncStreamWatch: true
`

// kwokFiles are files of KWOK's own module: nodes with leases, and pods without delays of their start and stop.
var kwokFiles = []string{
	"stage/node/fast/node-initialize.yaml",
	"stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"stage/pod/fast/pod-ready.yaml",
	"stage/pod/fast/pod-complete.yaml",
	"stage/pod/fast/pod-delete.yaml",
}

// kwok is KWOK.
type kwok struct {
	as                      string // its name
	program, version, files string
}

// parallel is the number of concurrent operations of each kind with kwok-parallel: as many as our agent's
// concurrent writes of pods.
const parallel = "32"

// newKWOK builds KWOK, if its version is not in the folder of programs already.
func newKWOK(ctx context.Context, cfg config, name string) (agent, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-C", kwokPin, "-m", "-f", "{{.Version}} {{.Dir}}", kwokModule).Output()
	version, dir, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !found {
		return nil, fmt.Errorf("find KWOK: %w: %q; its module is downloaded by: go mod download -C bench/%s", err, out, kwokPin)
	}
	k := &kwok{as: name, version: version, files: filepath.Join(dir, "kustomize")}
	if k.program, err = filepath.Abs(filepath.Join(cfg.bin, "kwok-"+version)); err != nil {
		return nil, err
	}
	if _, err := os.Stat(k.program); err == nil {
		return k, nil
	}
	printProgress("building KWOK %s, once", version)
	build := exec.CommandContext(ctx, "go", "build", "-C", kwokPin, "-trimpath", "-ldflags=-s -w", "-o", k.program, kwokModule+"/cmd/kwok")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build KWOK: %w: %s", err, out)
	}
	return k, nil
}

func (k *kwok) agentName() string { return k.as }

func (k *kwok) describeSettings() string {
	if k.as != "kwok" {
		return "the same with " + parallel + " instead of 4 in each of its settings of parallelism"
	}
	return "KWOK " + k.version + ", options as it is deployed with, stages for fast pods and for nodes with leases"
}

func (k *kwok) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	nodes := s.nodeNames(prefix)
	if err := m.makeNodes(ctx, nodes, map[string]string{"kwok.x-k8s.io/node": "fake"}); err != nil {
		return nil, err
	}
	config, err := k.writeConfig(m.base)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(k.program, "--kubeconfig="+m.kubeconfig, "--config="+config) //nolint:noctx // it is ended by stop, gently
	cmd.Env = append(cmd.Environ(), "KWOK_WORKDIR="+filepath.Join(m.base, "kwok"))
	return m.startNodes(ctx, k.agentName(), cmd, nodes)
}

// writeConfig writes options and stages into one file.
func (k *kwok) writeConfig(dir string) (string, error) {
	options := kwokOptions
	if k.as != "kwok" {
		options = strings.ReplaceAll(options, "Parallelism: 4", "Parallelism: "+parallel)
	}
	all := bytes.NewBufferString(options)
	for _, name := range kwokFiles {
		part, err := os.ReadFile(filepath.Join(k.files, filepath.FromSlash(name)))
		if err != nil {
			return "", fmt.Errorf("read KWOK's own file: %w", err)
		}
		all.WriteString("---\n")
		all.Write(part)
	}
	path := filepath.Join(dir, "kwok.yaml")
	if err := os.WriteFile(path, all.Bytes(), 0o600); err != nil {
		return "", fmt.Errorf("write KWOK's configuration: %w", err)
	}
	return path, nil
}
