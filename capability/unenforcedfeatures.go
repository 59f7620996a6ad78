// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// UnenforcedAnnotation is an annotation of a Node. It lists the features, separated by commas, that its pods may request but do not get.
const UnenforcedAnnotation = "virtual-kubelet.io/unenforced"

// acceptable are the features whose absence does not prevent the containers of a pod from running, with their files and resources. It has no features
// that give a container access to the machine, because the container would not work without them.
var acceptable = []Feature{
	ContainerRestartRules, PostStartHooks, PreStopHooks, StopSignal, ExecProbes, NetworkProbes, TerminationMessages, InteractiveContainers,
	MountPropagation, MountOptions, HostPorts, HostPortMapping, HostAliases, DNS, Hostname, SharedProcesses, UserNamespaces, RunAsUser, FSGroup,
	Capabilities, NoNewPrivileges, ReadOnlyRoot, Seccomp, AppArmor, SELinux, Sysctls, WindowsOptions, RuntimeClass,
}

// Acceptable returns the allowed arguments of Accept.
func Acceptable() []Feature { return slices.Clone(acceptable) }

// OwnMachine returns the features to Accept for a service that lacks them and runs each pod in a virtual machine of its own: the machine limits the
// privileges of a container.
func OwnMachine() []Feature { return []Feature{NoNewPrivileges, Seccomp, Capabilities} }

// Accept returns a declaration that runs a pod without the missing features of the backend, instead of refusing the pod. It replaces an earlier
// Accept. It only applies to the features of Acceptable, except for three fields: capabilities.add, and a profile of the type Localhost for Seccomp
// or AppArmor, because such a profile was written for the pod.
func (d Declaration) Accept(features ...Feature) Declaration {
	d = d.copyDeclaration()
	clear(d.accepted)
	for _, f := range features {
		d.accepted[f] = slices.Contains(acceptable, f)
	}
	return d
}

// Accepted returns the accepted features that the backend lacks, completely or in some fields.
func (d Declaration) Accepted() []Feature {
	var all []Feature
	for _, f := range Features() {
		if d.accepted[f] && (!d.Has(f) || len(d.parts[f]) > 0) {
			all = append(all, f)
		}
	}
	return all
}

// Unenforced returns the fields of a pod that are accepted and ignored, or nil.
func (d Declaration) Unenforced(pod *corev1.Pod) []Unsupported {
	_, unenforced := d.judgePod(pod)
	return unenforced
}

// UnenforcedMessage returns one text about all of the fields, with their paths.
func UnenforcedMessage(all []Unsupported) string {
	return "this node runs the pod without " + joinTexts(all)
}

// LeaveOut removes the accepted and missing features from a private copy of a pod, so that a provider does not have to handle them.
func (d Declaration) LeaveOut(pod *corev1.Pod) {
	for _, u := range d.Unenforced(pod) {
		path := u.Path
		if u.Feature == ExecProbes || u.Feature == NetworkProbes { // a probe that does nothing counts as no probe
			path = path[:strings.LastIndexByte(path, '.')]
		}
		fieldOf(pod, path).SetZero()
	}
}

// canBeLeftOut reports whether the pod can run without a field.
func (n Need) canBeLeftOut(pod *corev1.Pod) bool {
	switch n.Feature {
	case Capabilities:
		return !strings.HasSuffix(n.Path, ".add")
	case Seccomp:
		return fieldOf(pod, n.Path).Interface().(*corev1.SeccompProfile).Type == corev1.SeccompProfileTypeRuntimeDefault
	case AppArmor:
		return fieldOf(pod, n.Path).Interface().(*corev1.AppArmorProfile).Type == corev1.AppArmorProfileTypeRuntimeDefault
	default:
		return true
	}
}
