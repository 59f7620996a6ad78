// SPDX-License-Identifier: Apache-2.0

// Command conformance runs Kubernetes' own tests of a node against a virtual node, in a cluster of its own, and
// writes docs/reports/conformance.md. The page also lists the requirements.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/containerdtest"

	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/box"
	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/cluster"
	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/images"
	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/suite"
)

// allSets are the sets on a page of one node.
const allSets = "node,cluster,serial"

type options struct {
	agent    string
	provider string
	runtime  string
	network  string
	sets     string
	focus    string
	skip     string
	procs    int
	nodes    int
	programs string
	results  string
	work     string
	inside   bool
	hold     bool
	report   string
	known    string
	beside   string
	again    bool
	only     bool
}

func main() {
	if box.IsFirst() {
		os.Exit(box.First())
	}
	var o options
	flag.StringVar(&o.agent, "agent", "virtual-kubelet", "what runs the node: virtual-kubelet, or kubelet for a comparison")
	flag.StringVar(&o.provider, "provider", "cri", "what virtual-kubelet runs pods with: cri, in a containerd, or process")
	flag.StringVar(&o.runtime, "runtime", "gvisor", "with the provider process: gvisor or runc, which makes the containers")
	flag.StringVar(&o.network, "network", "pods", "with the provider process: pods, a network for each pod by CNI plugins; own, the one that it has by default; or machine, that of the machine, without the tests that need more")
	flag.StringVar(&o.sets, "sets", allSets, "which tests, one set after the other: node, cluster, serial, scheduling, conformance, conformance-serial, quick, gate")
	flag.StringVar(&o.focus, "focus", "", "regular expression of the tests to run, in the place of a set's")
	flag.StringVar(&o.skip, "skip", "", "regular expression of tests to leave out, in the place of a set's")
	flag.IntVar(&o.procs, "procs", 0, "how many tests run at a time, in the place of a set's number, if that is not 1")
	flag.IntVar(&o.nodes, "nodes", 1, "how many nodes the cluster has: 1, or 2")
	flag.StringVar(&o.programs, "programs", "bin", "directory of devcluster and virtual-kubelet, and of conformance/ with the other programs")
	flag.StringVar(&o.results, "results", "", "directory for reports and logs (default .cache/conformance; with the provider process its runtime, and with a kubelet that, behind a dash)")
	flag.BoolVar(&o.hold, "hold", false, "run no test: keep the cluster until the program is told to stop")
	flag.StringVar(&o.report, "report", "", "page to write from the reports")
	flag.StringVar(&o.known, "known", "", "file with the reasons of tests that are known to fail (default that of the provider and the runtime in test/conformance)")
	flag.BoolVar(&o.again, "again", false, "run one by one the tests that failed in the last run of the sets; the page says which of them passed so")
	flag.StringVar(&o.beside, "beside", "", "directory with reports of the same sets with a kubelet, to compare with on the page (default with two nodes .cache/conformance-kubelet)")
	flag.BoolVar(&o.only, "report-only", false, "run no test: use the reports of the last run")
	flag.BoolVar(&o.inside, "inside", false, "for the program itself: it is in a box")
	flag.StringVar(&o.work, "work", "", "for the program itself: where it works")
	flag.Parse()
	o.setDefaults()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := o.chooseRun()(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// setDefaults sets the options from the provider, its runtime and the number of nodes.
func (o *options) setDefaults() {
	known, results := "test/conformance/known.tsv", ".cache/conformance"
	switch {
	case o.nodes == 2:
		known = "test/conformance/known-two-nodes.tsv"
		if o.agent == "kubelet" {
			results += "-kubelet"
		} else {
			o.beside = cmp.Or(o.beside, results+"-kubelet")
		}
	case o.agent == "kubelet":
		results += "-kubelet"
	case o.provider == "process" && o.network == "own":
		known, results = "test/conformance/known-process-own.tsv", results+"-own"
	case o.provider == "process" && o.runtime == "runc":
		known, results = "test/conformance/known-process-runc.tsv", results+"-runc"
	case o.provider == "process":
		known, results = "test/conformance/known-process.tsv", results+"-gvisor"
	}
	o.known, o.results = cmp.Or(o.known, known), cmp.Or(o.results, results)
}

// chooseRun returns the function of this process.
func (o *options) chooseRun() func(context.Context) error {
	switch {
	case o.inside:
		return o.run
	case o.hold:
		return o.runOutside
	case o.only:
		return func(context.Context) error { return o.writePage() }
	default:
		return func(ctx context.Context) error {
			if err := o.runOutside(ctx); err != nil {
				return err
			}
			return o.writePage()
		}
	}
}

// runOutside prepares everything that outlives the box, and runs the rest in the box.
func (o *options) runOutside(ctx context.Context) (err error) {
	if o.nodes != 1 && o.nodes != 2 {
		return fmt.Errorf("-nodes=%d: a cluster here has 1 node, or 2", o.nodes)
	}
	if o.runtime != "gvisor" && o.runtime != "runc" {
		return fmt.Errorf("-runtime=%s: want gvisor or runc", o.runtime)
	}
	if o.provider != "process" {
		if err := containerdtest.Missing(); err != nil {
			return err
		}
	}
	for _, path := range []*string{&o.programs, &o.results} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(o.results, 0o755); err != nil {
		return err
	}
	if o.again {
		_, err = o.failedTests()
	} else {
		err = o.forgetAgain()
	}
	if err != nil {
		return err
	}
	if o.work, err = os.MkdirTemp("", "vk-conformance-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.work)) }()
	// Users of a container's own user namespace must be able to pass through this directory, too.
	if err := os.Chmod(o.work, 0o755); err != nil {
		return err
	}
	return box.Run(ctx, cluster.Node, o.cgroupName(), "-inside", "-agent="+o.agent, "-provider="+o.provider, "-runtime="+o.runtime, "-network="+o.network,
		"-sets="+o.sets, "-focus="+o.focus, "-skip="+o.skip, "-known="+o.known, fmt.Sprintf("-again=%t", o.again),
		fmt.Sprintf("-procs=%d", o.procs), fmt.Sprintf("-nodes=%d", o.nodes), "-programs="+o.programs, "-results="+o.results, "-work="+o.work, fmt.Sprintf("-hold=%t", o.hold))
}

// cgroupName returns the name of the cgroup. It is as unique as the directory, so several of these programs can run
// at a time.
func (o *options) cgroupName() string { return "/" + filepath.Base(o.work) }

// run is the main function of the program in the box.
func (o *options) run(ctx context.Context) (err error) {
	// Temporary files end with the box.
	if err := os.Setenv("TMPDIR", o.work); err != nil {
		return err
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("find busybox: %w; install busybox-static", err)
	}
	programs := filepath.Join(o.programs, "conformance")
	sources, err := os.ReadFile(filepath.Join(programs, "kubernetes"))
	if err != nil {
		return fmt.Errorf("find Kubernetes' sources: %w; run hack/build-conformance.sh", err)
	}
	_, dnsErr := os.Stat(filepath.Join(programs, "coredns"))
	c, err := cluster.Start(ctx, cluster.Options{
		Work: o.work, Cgroup: o.cgroupName(), Nodes: o.nodes, Logs: o.results, Agent: o.agent, Provider: o.provider, Runtime: o.runtime, Network: o.network,
		Programs: programs, DNS: dnsErr == nil,
		Devcluster:     filepath.Join(o.programs, "devcluster"),
		VirtualKubelet: filepath.Join(o.programs, "virtual-kubelet"),
		Images:         images.Programs{Dir: programs, Sources: strings.TrimSpace(string(sources)), Busybox: busybox},
		Say:            printLine,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if o.hold {
		printLine("the cluster runs; kubeconfig %s, kubectl %s, runtime %s; enter it with nsenter -a -t PID", c.Kubeconfig, c.Kubectl, c.Endpoint)
		<-ctx.Done()
		return nil
	}
	return o.runSuites(ctx, c)
}

func (o *options) runSuites(ctx context.Context, c *cluster.Cluster) error {
	p := suite.Programs{
		Ginkgo: filepath.Join(c.Programs, "ginkgo"), Tests: filepath.Join(c.Programs, "e2e.test"),
		Kubectl: c.Kubectl, Kubeconfig: c.Kubeconfig, Endpoint: c.Endpoint, Nodes: o.nodes,
	}
	if o.again {
		names, err := o.failedTests()
		if err != nil {
			return err
		}
		printLine("%d tests run again, one by one", len(names))
		return suite.Run(ctx, p, suite.Again(names), o.results)
	}
	for name := range strings.SplitSeq(o.sets, ",") {
		set, ok := suite.Sets()[name]
		if !ok {
			return fmt.Errorf("there is no set %q; there are node, cluster, serial, scheduling, conformance, conformance-serial, quick and gate", name)
		}
		printLine("set %s begins", name)
		if err := suite.Run(ctx, p, o.changeSet(set), o.results); err != nil {
			return err
		}
	}
	return nil
}

// changeSet replaces settings of the set by the options.
func (o *options) changeSet(set suite.Set) suite.Set {
	if o.focus != "" {
		set.Focus, set.Skip = o.focus, o.skip
	}
	if o.network == "machine" {
		set.Skip = eitherPattern(set.Skip, isolated.Pattern())
	}
	// Tests run one by one if they disturb others.
	if o.procs > 0 && set.Procs > 1 {
		set.Procs = o.procs
	}
	return set
}

// eitherPattern returns a regular expression for a, or b, or both; "" matches nothing.
func eitherPattern(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "|" + b
}

func printLine(format string, args ...any) { fmt.Printf("conformance: "+format+"\n", args...) }
