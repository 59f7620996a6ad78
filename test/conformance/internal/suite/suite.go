// SPDX-License-Identifier: Apache-2.0

// Package suite runs Kubernetes' end-to-end suite, with a few selections of tests.
package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Set is a selection of tests.
type Set struct {
	Name string
	// Focus and Skip are regular expressions over the whole name of a test.
	Focus, Skip string
	// Procs is the number of tests that run at a time. Tests mostly wait, so it is much larger than the number of cores.
	Procs int
	// Limit is the total time for all tests on a busy machine.
	Limit time.Duration
}

// nodeTests are the tests whose result depends on the node.
const nodeTests = `\[sig-(node|storage)\].*\[(Node)?Conformance\]`

// clusterTests are the tests of other parts of a cluster that run pods on a node: services and DNS, workloads,
// kubectl, scheduling, tokens of service accounts, webhooks.
const clusterTests = `\[sig-(network|apps|cli|scheduling|instrumentation|auth|api-machinery)\].*\[Conformance\]`

// disturbing tests empty the node or change it, so they run alone.
const disturbing = `\[Serial\]|\[Disruptive\]`

// NotRun are the excluded tests of the sets with one node, because they take too long. The sets conformance and conformance-serial
// exclude none of them.
const NotRun = `InPlacePodLevelResourcesVerticalScaling|MaxContainerBackOff|continue listing from the last key`

// AgainName is the name of the set from [Again].
const AgainName = "again"

// Again returns the set of the named tests, which run one at a time.
func Again(names []string) Set {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return Set{Name: AgainName, Focus: "(" + strings.Join(quoted, "|") + ")$", Procs: 1, Limit: time.Hour}
}

// Sets returns the sets of tests, by name.
func Sets() map[string]Set {
	return map[string]Set{
		"node": {
			Name: "node", Focus: nodeTests, Skip: disturbing + "|" + NotRun, Procs: 16, Limit: 45 * time.Minute,
		},
		"cluster": {
			Name: "cluster", Focus: clusterTests, Skip: disturbing + "|" + NotRun, Procs: 16, Limit: 30 * time.Minute,
		},
		"serial": {
			Name: "serial", Procs: 1, Limit: 30 * time.Minute, Skip: NotRun,
			Focus: `\[sig-(node|storage)\].*(\[Serial\]|\[Disruptive\]).*\[(Node)?Conformance\]|\[sig-(node|storage)\].*\[(Node)?Conformance\].*(\[Serial\]|\[Disruptive\])|` +
				`\[sig-apps\].*\[Conformance\].*\[Serial\]`,
		},
		"scheduling": { // most of them wait a minute for pods that do not exist, and one waits five minutes
			Name: "scheduling", Focus: `\[sig-scheduling\].*\[Conformance\].*\[Serial\]`, Procs: 1, Limit: 30 * time.Minute,
		},
		"conformance": { // the whole list for a certified cluster, without disturbing tests
			Name: "conformance", Focus: `\[Conformance\]`, Skip: disturbing, Procs: 16, Limit: time.Hour,
		},
		"conformance-serial": {
			Name: "conformance-serial", Procs: 1, Limit: time.Hour,
			Focus: `(` + disturbing + `).*\[Conformance\]|\[Conformance\].*(` + disturbing + `)`,
		},
		"quick": {
			Name: "quick", Focus: nodeTests, Procs: 16, Limit: 30 * time.Minute,
			Skip: disturbing + "|" + NotRun + "|" + slow,
		},
		"gate": {
			Name: "gate", Focus: gate, Procs: 12, Limit: 20 * time.Minute,
			Skip: disturbing + "|" + NotRun + "|" + slow,
		},
	}
}

// gate are tests of every part of a pod that take seconds. Each change has to pass them.
const gate = `\[sig-node\] (Containers|Container Runtime|Container Lifecycle|Downward API|Ephemeral|InitContainer|Kubelet when|KubeletManagedEtcHosts|Lease|` +
	`PreStop|RuntimeClass|Secrets|Security Context|Sysctls|Variable Expansion should allow|Pods should (be|get|support|contain)).*\[Conformance\]|` +
	`\[sig-storage\] (ConfigMap|Downward API volume|EmptyDir volumes|Projected (combined|secret)|Secrets|Subpath).*\[Conformance\]`

// slow are the tests with waits of half a minute and more, for a timeout or an interval of the node.
const slow = `\[Slow\]|\[Feature:|Probing (restartable init )?container|Should fail non-optional|optional updates should be reflected|ImageVolume|issue 500 podspec updates`

// Programs are the programs for a run.
type Programs struct {
	Ginkgo, Tests string // the runner, and the suite
	Kubectl       string
	Kubeconfig    string
	Endpoint      string // of the container runtime
	Nodes         int    // number of nodes of the cluster
}

// Run runs a set and writes NAME.json into the directory. Failed tests are no error.
func Run(ctx context.Context, p Programs, s Set, dir string) error {
	args := []string{
		"--procs=" + strconv.Itoa(s.Procs), "--no-color", "--timeout=" + s.Limit.String(), "--output-interceptor-mode=none",
		"--focus=" + s.Focus, "--output-dir=" + dir, "--json-report=" + s.Name + ".json",
	}
	if s.Skip != "" {
		args = append(args, "--skip="+s.Skip)
	}
	args = append(args, p.Tests, "--", "--provider=skeleton", "--kubeconfig="+p.Kubeconfig, "--kubectl-path="+p.Kubectl, "--num-nodes="+strconv.Itoa(p.Nodes),
		"--allowed-not-ready-nodes=0", "--minStartupPods=0", "--system-pods-startup-timeout=10s", "--node-os-distro=custom",
		"--prepull-images=false", "--disable-log-dump=true", "--container-runtime-endpoint="+p.Endpoint, "--report-dir="+dir)
	log, err := os.Create(filepath.Join(dir, s.Name+".log"))
	if err != nil {
		return fmt.Errorf("run the suite: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(ctx, p.Ginkgo, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	err = cmd.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) && ctx.Err() == nil {
		err = nil // the report has the failures; a missing report is noticed by its reader
	}
	if err != nil {
		return fmt.Errorf("run the suite: %w; see %s", err, log.Name())
	}
	return nil
}
