// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// UnenforcedAnnotation is an annotation of a Node: the features, separated by commas, that its pods may ask for and do not get.
const UnenforcedAnnotation = "virtual-kubelet.io/unenforced"

// acceptable are the features without which a pod still runs its containers, with their files and the resources that they ask for. A feature that gives
// a container power over the machine is not among them: a container that does not get it does not work.
var acceptable = []Feature{
	ContainerRestartRules, PostStartHooks, PreStopHooks, StopSignal, ExecProbes, NetworkProbes, TerminationMessages, InteractiveContainers,
	MountPropagation, MountOptions, HostPorts, HostPortMapping, HostAliases, DNS, Hostname, SharedProcesses, UserNamespaces, RunAsUser, FSGroup,
	Capabilities, NoNewPrivileges, ReadOnlyRoot, Seccomp, AppArmor, SELinux, Sysctls, WindowsOptions, RuntimeClass,
}

// Acceptable returns the features that Accept takes.
func Acceptable() []Feature { return slices.Clone(acceptable) }

// OwnMachine returns the features to Accept for a service that lacks them and runs each pod in a virtual machine of its own: the rights that a container
// keeps without them end at that machine.
func OwnMachine() []Feature { return []Feature{NoNewPrivileges, Seccomp, Capabilities} }

// Accept returns a declaration that lets a pod run without the features, where the backend does not have them, instead of refusing the pod. It takes the
// place of an earlier Accept. Features that are not Acceptable are refused as before, and so are three fields: capabilities.add, and a profile of the
// type Localhost for Seccomp or AppArmor, which somebody wrote for this pod.
func (d Declaration) Accept(features ...Feature) Declaration {
	d = d.clone()
	clear(d.accepted)
	for _, f := range features {
		d.accepted[f] = slices.Contains(acceptable, f)
	}
	return d
}

// Accepted returns the features that the declaration accepts and the backend does not have, or has without some of their fields.
func (d Declaration) Accepted() []Feature {
	var all []Feature
	for _, f := range Features() {
		if d.accepted[f] && (!d.Has(f) || len(d.parts[f]) > 0) {
			all = append(all, f)
		}
	}
	return all
}

// Unenforced returns all that a pod asks for and runs without, as the declaration accepts that; nil if it gets all.
func (d Declaration) Unenforced(pod *corev1.Pod) []Unsupported {
	_, unenforced := d.judge(pod)
	return unenforced
}

// UnenforcedMessage is one text about all of them, with the path of each field.
func UnenforcedMessage(all []Unsupported) string {
	return "this node runs the pod without " + join(all)
}

// LeaveOut takes out of a private copy of a pod what the backend does not have and the declaration accepts, so that a provider need not know of it.
func (d Declaration) LeaveOut(pod *corev1.Pod) {
	for _, u := range d.Unenforced(pod) {
		path := u.Path
		if u.Feature == ExecProbes || u.Feature == NetworkProbes { // a probe that does nothing is none
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
