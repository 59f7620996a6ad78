// SPDX-License-Identifier: Apache-2.0

package remotetest

import "github.com/virtual-kubelet/virtual-kubelet/capability"

// Goroutines returns the contract checks that a Worker cannot pass, because its containers are goroutines, with
// the reasons.
func Goroutines() map[string]string {
	except := map[string]string{}
	for _, name := range []string{
		"probes/network", "settings/capabilities", "settings/dns", "settings/fs-group", "settings/host-aliases", "settings/hostname",
		"settings/limits", "settings/no-new-privileges", "settings/read-only-root", "settings/restart-rules", "settings/run-as-user",
		"settings/seccomp", "settings/stop-signal", "settings/sysctls",
	} {
		except[name] = "the containers of this test are goroutines, which have nothing of it"
	}
	return except
}

// Unproven returns the features that a Worker does not have. Their fields are passed to the remote node
// unchanged. tokens is the name of the test for token volumes.
func Unproven(tokens string) map[capability.Feature]string {
	all := map[capability.Feature]string{capability.TokenVolumes: "no check of the contract has tokens; " + tokens}
	for _, f := range []capability.Feature{
		capability.ContainerRestartRules, capability.StopSignal, capability.NetworkProbes, capability.ContainerLimits, capability.PodResources,
		capability.ImageVolumes, capability.MountPropagation, capability.MountOptions, capability.EnvFiles, capability.HostAliases, capability.DNS,
		capability.Hostname, capability.SharedProcesses, capability.UserNamespaces, capability.RunAsUser, capability.FSGroup, capability.Capabilities,
		capability.NoNewPrivileges, capability.ReadOnlyRoot, capability.Seccomp, capability.AppArmor, capability.SELinux, capability.Sysctls,
		capability.WindowsOptions,
	} {
		all[f] = "the remote pod has the fields as they are, by the tests of the translation; the containers of this test are goroutines, without what they act on"
	}
	return all
}
