// SPDX-License-Identifier: Apache-2.0

// Package repo_test holds the rules of this repository. Each rule has its reason beside it; the checks themselves are in
// internal/testing/repocheck.
//
// Note: the rules also apply to the nested modules, in files of every build tag. The tests run at the top of the tree.
package repo_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
)

// directions keep imports in one direction: cmd → cli → node/nodeutil → node, node/api → internal/*. The first match applies.
var directions = []repocheck.Direction{
	{Packages: "errdefs", May: nil, Outside: []string{},
		Why: "every provider imports the error kinds, so they cost nothing"},
	{Packages: "log", May: nil, Outside: []string{},
		Why: "the logger interface must not choose a logging library"},
	{Packages: "trace", May: []string{"log"}, Outside: []string{},
		Why: "the span interface must not choose a tracing library"},
	{Packages: "log/...", May: []string{"log"},
		Why: "an adapter joins the interface and one library"},
	{Packages: "trace/...", May: []string{"log", "trace", "errdefs"},
		Why: "an adapter joins the interface and one library"},

	{Packages: "capability", May: nil, Outside: []string{"k8s.io/api", "k8s.io/apimachinery"},
		Why: "what a pod asks for is read from the pod alone"},
	{Packages: "internal/lifecycle", May: []string{"providerkit/podstatus"}, Outside: []string{"k8s.io/api", "k8s.io/apimachinery"},
		Why: "the rules for a pod are pure functions: no client, no clock, no goroutine"},
	{Packages: "internal/testing/repocheck", May: nil, Outside: []string{"golang.org/x/mod"},
		Why: "the rules must run even when the library does not compile"},
	{Packages: "internal/testing/memapi", May: []string{"internal/...", "providerkit/podstatus", "errdefs", "log", "trace"},
		Why: "an API server of tests refuses statuses by the restart rule of Kubernetes, which is in one place"},
	{Packages: "internal/...", May: []string{"errdefs", "log", "trace"},
		Why: "the controllers stand on internal packages, not the other way round"},

	{Packages: "node/podinputs", May: []string{"internal/imagematch"}, Outside: []string{"k8s.io/api"},
		Why: "a program that runs pods without an API server imports it, and no client"},
	{Packages: "node", May: []string{"node/podinputs", "capability", "internal/...", "errdefs", "log", "trace"},
		Why: "the controllers know no HTTP server and no way to be assembled"},
	{Packages: "node/api/...", May: []string{"internal/...", "errdefs", "log", "trace"},
		Why: "the HTTP handlers serve programs that bring their own controllers"},
	{Packages: "node/nodeutil", May: []string{"node", "node/api/...", "internal/...", "errdefs", "log", "trace"},
		Why: "it assembles a node, and nothing but programs stands on it"},
	{Packages: "podruntime/internal/plan", May: []string{"providerkit/podstatus"}, Outside: []string{"k8s.io/api", "k8s.io/apimachinery"},
		Why: "what a pod needs next is a pure function: no client, no clock, no goroutine"},
	{Packages: "podruntime/internal/podstatus", May: []string{"podruntime/internal/plan", "providerkit/podstatus"}, Outside: []string{"k8s.io/api", "k8s.io/apimachinery"},
		Why: "the status of a pod is a pure function: no client, no clock, no goroutine"},
	{Packages: "podruntime/...", May: []string{"capability", "node/...", "providerkit/...", "internal/...", "errdefs", "log", "trace"},
		Why: "it is a backend for providers, so it knows none of them"},
	{Packages: "providertest/...", May: []string{"capability", "node/...", "providerkit/...", "internal/testing/memapi", "internal/podenv", "internal/podservices", "errdefs", "log", "trace"},
		Why: "the contract sees a provider as the controllers do"},
	{Packages: "cli/...", May: []string{"capability", "node/...", "providertest/...", "internal/...", "errdefs", "log/...", "trace/..."},
		Why: "the main loop serves every provider, so it knows none of them"},

	{Packages: "providerkit/config", May: []string{"cli/configfile", "internal/certs/certfile", "log"},
		Why: "what a provider is made with knows no node and no program"},
	{Packages: "providerkit/podspec", May: []string{"node/podinputs", "internal/lifecycle", "internal/podenv", "errdefs"},
		Why: "what a pod asks for is read from its spec and the API, whatever the backend"},
	{Packages: "providerkit/podstatus", May: nil, Outside: []string{"k8s.io/api", "k8s.io/apimachinery"},
		Why: "the status of a pod is a pure function: no client, no clock, no goroutine"},
	{Packages: "providerkit/logs", May: []string{"node/api", "errdefs"},
		Why: "it knows lines and what is asked of them, and no backend"},
	{Packages: "providerkit/poll", May: []string{"errdefs", "log"},
		Why: "it knows pods and answers, and no service"},
	{Packages: "providerkit/shellexec/...", May: []string{"node/api"}, Outside: []string{"k8s.io/utils", "golang.org/x/sys"},
		Why: "it knows a shell and what comes from it, and no service"},
	{Packages: "providerkit/identity", May: nil, Outside: []string{"k8s.io/api", "k8s.io/apimachinery"},
		Why: "names and tags are a pure function of what they name"},
	{Packages: "providerkit/sizing", May: nil, Outside: []string{"k8s.io/api", "k8s.io/apimachinery"},
		Why: "what is bought is a pure function of a table and what is asked"},
	{Packages: "providerkit/nodehealth", May: nil, Outside: []string{"k8s.io/api", "k8s.io/apimachinery"},
		Why: "the conditions of a node that is well are constants"},
	{Packages: "providerkit/probing", May: nil, Outside: []string{"k8s.io/api", "k8s.io/apimachinery", "github.com/prometheus/client_model"},
		Why: "what is told to who probes containers, and by it, is data"},
	{Packages: "providerkit/service", May: []string{"capability", "node", "node/api", "errdefs", "log", "providerkit/identity", "providerkit/logs", "providerkit/nodehealth", "providerkit/podspec", "providerkit/podstatus", "providerkit/poll", "providerkit/probing", "providerkit/shellexec"},
		Why: "it knows pods and a driver, and no service, no HTTP server and no program"},
	{Packages: "providerrpc/...", May: []string{"capability", "node/...", "errdefs", "log", "trace"},
		Why: "a plugin of anybody imports it and pays for the wire only"},
	{Packages: "providers/internal/remotecluster/remotetest", May: []string{"node/...", "providertest/...", "providers/internal/remotecluster", "cli", "capability", "errdefs", "internal/testing/testapi", "internal/testing/testlog", "internal/testing/testterminal"},
		Why: "only tests import it, and those have the API server that tests have"},
	{Packages: "providers/emulator/...", May: []string{"node/...", "providertest/...", "errdefs"},
		Why: "an emulator knows the service, and neither the provider that is tested on it nor what that is made of"},
	{Packages: "providers/...", May: []string{"capability", "node/...", "podruntime/...", "providerkit/...", "providerrpc/...", "providertest/...", "cli/...", "errdefs", "log/...", "trace/..."},
		Why: "a provider here uses what a provider elsewhere can use: the public packages"},
	{Packages: "cmd/virtual-kubelet/internal/scaffold/...", May: []string{"capability", "cli", "providerkit/...", "providertest/...", "providers/plugin", "node/...", "errdefs", "log"},
		Why: "a new provider uses what a provider elsewhere can use: the public packages"},
	{Packages: "cmd/...", May: []string{"capability", "cli/...", "providers/...", "providertest/...", "node/...", "errdefs", "log/...", "trace/..."},
		Why: "the binary shows what anybody's main can do: public packages only"},
	{Packages: "examples/...", May: []string{"capability", "node/...", "podruntime/...", "cli/...", "errdefs", "log/...", "trace/..."},
		Why: "an example shows what anybody's program can do: public packages only"},
	{Packages: "devcluster/...", May: nil,
		Why: "the cluster is run as a process and knows nothing of what is tested in it"},

	{Packages: "test/e2e", May: nil,
		Why: "providers import the suite; it sees the node through the API server only"},
	{Packages: "test/...", May: []string{"..."},
		Why: "the library must not be built from test code"},
	{Packages: "bench/...", May: []string{"node/...", "podruntime/...", "providerrpc/...", "providertest/...", "cli/...", "providers/...", "internal/testing/testapi", "internal/testing/testlog", "internal/testing/containerdtest", "errdefs", "log/...", "trace/..."},
		Why: "measurements look at the library from outside"},
	{Packages: "deploy/...", May: []string{"cli/...", "node/...", "internal/rbac", "internal/testing/testapi"},
		Why: "what is installed is tested with the library, and is no part of it"},
	{Packages: "hack/...", May: nil,
		Why: "tools must build without the library"},
}

// confined are dependencies that are heavy, or allowed only in parts of the library.
var confined = []repocheck.Confined{
	{Import: "go.opencensus.io", To: []string{"trace/opencensus"},
		Why: "OpenCensus is unmaintained and kept for programs that ask for its adapter"},
	{Import: "k8s.io/kubernetes", To: []string{"devcluster/...", "bench/kubelet", "test/conformance/programs"},
		Why: "it takes minutes to build and cannot be a library's dependency"},
	{Import: "go.etcd.io", To: []string{"devcluster/...", "bench/kubelet", "test/conformance/programs"},
		Why: "a node talks to the API server only"},
	{Import: "github.com/virtual-kubelet/node-cli", To: nil,
		Why: "it stands on another implementation of this module path"},
}

// theTree changes to the root of the tree and reads it once for all rules. It does so within a test: otherwise go test would not record the
// files, and would use cached results for a changed tree.
var theTree = sync.OnceValues(func() (*repocheck.Tree, error) {
	if err := os.Chdir("../.."); err != nil {
		return nil, err
	}
	return repocheck.Load(".")
})

func load(t *testing.T) *repocheck.Tree {
	t.Helper()
	tree, err := theTree()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// report fails the test for each breach; why is the reason of the rule.
func report(t *testing.T, why string, breaches []string) {
	t.Helper()
	for _, b := range breaches {
		t.Error(b)
	}
	if len(breaches) > 0 {
		t.Logf("the rule exists because %s", why)
	}
}

func TestImportsPointOneWay(t *testing.T) {
	report(t, "a reader must be able to understand a package from what stands below it",
		load(t).ImportDirections(directions))
}

func TestHeavyDependenciesStayInTheirPlace(t *testing.T) {
	tree := load(t)
	why := "whoever imports the library pays for each of its dependencies"
	report(t, why, tree.ConfinedImports(confined))
	report(t, why, tree.Requirements([]repocheck.Confined{confined[1], confined[2]}))
}

func TestLifecycleIsPure(t *testing.T) {
	report(t, "rules without clock and goroutine can be tested as tables",
		load(t).Pure("internal/lifecycle", "time comes in as a value, effects happen in node"))
}

func TestPackageDocs(t *testing.T) {
	report(t, "a package comment is the contract that a reader sees first, and godoc joins several at random",
		load(t).PackageDocs())
}

func TestLicenceLines(t *testing.T) {
	report(t, "a file may be read without the repository around it", load(t).Licences())
}

func TestNothingIsUnfinished(t *testing.T) {
	report(t, "a mark in a file is a task that nobody finds", load(t).Unfinished())
}

func TestTestsDoNotSleep(t *testing.T) {
	report(t, "a sleep is too short on a slow machine and too long on a fast one", load(t).Sleeps())
}

func TestNestedModulesUseTheTree(t *testing.T) {
	report(t, "the published module of this name is another implementation", load(t).Replaces())
}

// TestProgramsShareWhatIsCompiled: if a module below Kubernetes has another version, all of Kubernetes above it is compiled again for the
// next program of `make up`, which takes minutes.
func TestProgramsShareWhatIsCompiled(t *testing.T) {
	load(t)
	versions := func(folder string) map[string]string {
		text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		file, err := modfile.Parse(folder, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, r := range file.Require {
			for _, below := range []string{"golang.org/x/", "google.golang.org/", "go.yaml.in/", "k8s.io/", "sigs.k8s.io/"} {
				if strings.HasPrefix(r.Mod.Path, below) {
					all[r.Mod.Path] = r.Mod.Version
				}
			}
		}
		return all
	}
	first := versions("cmd/virtual-kubelet")
	for _, folder := range []string{"devcluster", "test/conformance", "test/conformance/programs", "bench", "bench/kubelet"} {
		for module, version := range versions(folder) {
			if want, both := first[module]; both && version != want && version != "v0.0.0" { // v0.0.0 is replaced
				t.Errorf("%s/go.mod has %s %s, and cmd/virtual-kubelet %s: run go get %s@%s and go mod tidy there", folder, module, version, want, module, want)
			}
		}
	}
}

func TestDocumentedTargetsExist(t *testing.T) {
	breaches, err := load(t).MakeTargets("README.md", "CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	report(t, "the first command that a newcomer types must work", breaches)
}

func TestLinksLead(t *testing.T) {
	breaches, err := load(t).Links("test/conformance/page.md", "test/conformance/page-process.md", "test/conformance/page-process-runc.md", "test/conformance/page-two-nodes.md")
	if err != nil {
		t.Fatal(err)
	}
	report(t, "a reader who follows a link to nowhere stops reading", breaches)
}

func TestArchitectureNamesTheTree(t *testing.T) {
	breaches, err := load(t).Map("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	report(t, "a map that is wrong is worse than none", breaches)
}

func TestNamedFilesAreThere(t *testing.T) {
	breaches, err := load(t).NamedFiles("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	report(t, "a file that was renamed is looked for under its old name", breaches)
}

func TestEveryFaultIsTestedAndReported(t *testing.T) {
	breaches, err := load(t).FaultTests("docs/reports/faults.md", 63, 46, 49) // both are about files that the node does not keep
	if err != nil {
		t.Fatal(err)
	}
	report(t, "a fault that nobody injects is one that nobody survives for certain", breaches)
}

func TestDecisionsAreNumberedAndIndexed(t *testing.T) {
	breaches, err := load(t).Decisions("docs/decisions")
	if err != nil {
		t.Fatal(err)
	}
	report(t, "decisions refer to each other by number, and a reader looks for one by its title", breaches)
}
