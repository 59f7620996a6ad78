// SPDX-License-Identifier: Apache-2.0

package repo_test

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
)

// shape is the required shape of every provider; docs/decisions/0025-provider-shape.md has the reasons and the content of each file.
var shape = repocheck.Shape{
	Dir:       "providers",
	Emulators: "emulator",
	Files: []string{
		"README.md", "provider.go", "config.go", "capabilities.go", "contract_test.go",
		"mapping.go", "mapping_test.go", "status.go", "status_test.go", "client.go",
	},
	// A provider of a service is six files to write: config.go, capabilities.go, client.go, mapping.go, status.go, and driver.go, which may
	// also have the function Provider. The skeleton of new-provider has these files.
	Entry: []string{"provider.go", "driver.go"},
	// podruntime maps pods to containers, and containers to statuses; remotecluster maps pods to pods of another cluster.
	Done: map[string][]string{
		"providerkit/service":              {"provider.go"},
		"podruntime":                       {"mapping.go", "mapping_test.go", "status.go", "status_test.go"},
		"providers/internal/remotecluster": {"mapping.go", "mapping_test.go", "status.go", "status_test.go", "client.go"},
	},
	Excused: map[string]map[string]string{
		"mock": {
			"capabilities.go": "it runs nothing, so it declares nothing and takes every pod",
			"client.go":       "it has no service: its pods are in its own memory",
		},
		"plugin": {
			"capabilities.go": "the plugin declares what it has",
			"mapping.go":      "the plugin gets pods as they are", "mapping_test.go": "it has no mapping",
			"status.go": "the plugin tells statuses as they are", "status_test.go": "it has no mapping",
		},
		"process": {"client.go": "it has no service: its containers are processes of the machine, kept by internal/shim"},
	},
	Program: "cmd/virtual-kubelet",
}

func TestProvidersHaveOneShape(t *testing.T) {
	report(t, "who has read one provider knows where to look in the next, and a program is made of any of them alike",
		load(t).Providers(shape))
}

// methodFiles has the files of abilities: of providers that the node calls directly, and of drivers of providerkit/service.
var methodFiles = repocheck.MethodFiles{
	Dir: shape.Dir, Emulators: shape.Emulators, Shared: []string{"internal/remotecluster"},
	Methods: []repocheck.MethodFile{
		{Method: "GetContainerLogs", Takes: "api.ContainerLogOpts", File: "logs.go"},
		{Method: "RunInContainer", Takes: "api.AttachIO", File: "exec.go"},
		{Method: "AttachToContainer", Takes: "api.AttachIO", File: "attach.go"},
		{Method: "PortForward", Takes: "io.ReadWriteCloser", File: "portforward.go"},
		{Method: "GetStatsSummary", Takes: "context.Context", File: "stats.go"},
		{Method: "GetMetricsResource", Takes: "context.Context", File: "stats.go"},
		{Method: "ConfigureNode", Takes: "*corev1.Node", File: "node.go"},
		{Method: "NotifyNodeStatus", Takes: "func(*corev1.Node)", File: "node.go"},
		{Method: "Ping", Takes: "context.Context", File: "node.go"},
		{Method: "Examine", Takes: "context.Context", File: "examine.go"},

		{Method: "Logs", Takes: "service.Target[", File: "logs.go"},
		{Method: "Exec", Takes: "service.Target[", File: "exec.go"},
		{Method: "Attach", Takes: "service.Target[", File: "attach.go"},
		{Method: "Forward", Takes: "service.Target[", File: "portforward.go"},
		{Method: "Stats", Takes: "service.Target[", File: "stats.go"},
	},
	Together: "driver.go",
}

func TestMethodsOfProvidersHaveOneFile(t *testing.T) {
	report(t, "who looks for an ability of a provider finds it in the file that he knows from another one",
		load(t).MethodFiles(methodFiles))
}

// sections are the sections of a provider's README.
var sections = []string{
	"Try it", "Configuration file", "What pods get", repocheck.OtherSections, "When something fails", "Rights and credentials", "Cost", "Limits",
	"What the tests prove, and what they don't",
}

func TestSectionsOfProvidersHaveOneOrder(t *testing.T) {
	report(t, "who compares providers, or has read one, looks for the same thing in the same place",
		load(t).Sections(shape, []string{"cmd/virtual-kubelet/internal/scaffold/vk-skeleton"}, sections, "Configuration file"))
}

func TestAbilitiesOfProvidersAreListed(t *testing.T) {
	report(t, "an author implements what he knows of, and an ability that is not in the list is one that nobody has",
		load(t).Abilities(repocheck.Abilities{
			List: "node/abilities.go",
			In:   "cli", Type: "Provider", Field: "New",
			Guide:   "docs/providers/writing.md",
			AskedIn: []string{"node", "node/nodeutil", "node/api", "cli"},
			Others: map[string]string{
				"nodeutil.Auth":              "the context of a request",
				"nodeutil.PermissionsGetter": "an Auth",
			},
		}))
}
