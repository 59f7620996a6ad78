// SPDX-License-Identifier: Apache-2.0

package podjob

import "github.com/virtual-kubelet/virtual-kubelet/capability"

// Lacks returns the reasons why a pod in a job lacks some features, and notes about others.
func Lacks() (lacks, notes map[capability.Feature]string) {
	lacks, notes = map[capability.Feature]string{}, map[capability.Feature]string{}
	for why, features := range map[string][]capability.Feature{
		"the job was submitted without it, and nothing can be added to one": {capability.EphemeralContainers, capability.InPlaceResize},
		"no volume is made of an image":                                     {capability.ImageVolumes},
		"the standard input of a job is empty":                              {capability.InteractiveContainers},
		"volumes are the node's own mounts":                                 {capability.MountPropagation},
		"a job has nothing of the kind":                                     {capability.HostPortMapping, capability.RuntimeClass},
		"a container has the files of the job's node":                       {capability.HostAliases, capability.DNS, capability.ReadOnlyRoot, capability.Hostname},
		"nothing in a job applies it":                                       {capability.Seccomp, capability.AppArmor, capability.SELinux, capability.Capabilities, capability.Sysctls},
		"containers have process namespaces of their own":                   {capability.SharedProcesses},
		"no claim of a site's storage is mounted":                           {capability.PersistentVolume, capability.HostPath},
		"no identity of a job may ask for certificates":                     {capability.CertificateFiles},
		"jobs of users have no other groups":                                {capability.FSGroup},
		"the nodes of jobs have Linux":                                      {capability.WindowsOptions},
		"variables are resolved when the job is submitted":                  {capability.EnvFiles},
	} {
		for _, f := range features {
			lacks[f] = why
		}
	}
	notes[capability.ContainerLimits] = "as the sum for the job, as far as its machine keeps them"
	notes[capability.RunAsUser] = "only where the job runs as root; else it must be the user of the job"
	return lacks, notes
}
