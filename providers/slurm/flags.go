// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// annotationPrefix begins the annotations by which pods set options of Slurm, the same as in the Slurm plugin of
// interLink.
const annotationPrefix = "slurm-job.vk.io/"

// AnnotationFlags of a pod has flags for sbatch that the configuration allows: --constraint=fast --nice=10 -t
// 30.
const AnnotationFlags = annotationPrefix + "flags"

// annotationImageRoot of a pod has the prefix for the names of its images, such as docker://.
const annotationImageRoot = annotationPrefix + "image-root"

// flagsPath is the path of the flags in a pod.
const flagsPath = "metadata.annotations[" + AnnotationFlags + "]"

// allowedByDefault are the flags that pods may set without a configured list.
var allowedByDefault = []string{"--time"}

// nodeFlags are flags that the node sets for every pod, or that its configuration has. A pod with such a flag
// runs without it, and an event of the pod names the flag.
var nodeFlags = []string{
	"--job-name", "--comment", "--output", "--error", "--open-mode", "--chdir", "--parsable", "--requeue", "--no-requeue", "--export",
	"--nodes", "--ntasks", "--ntasks-per-node", "--cpus-per-task", "--mem", "--mem-per-cpu", "--partition", "--account", "--qos",
}

// shortFlags are the short forms of flags with a value, as in -t 30.
var shortFlags = map[string]string{
	"-A": "--account", "-a": "--array", "-b": "--begin", "-B": "--extra-node-info", "-C": "--constraint", "-c": "--cpus-per-task", "-D": "--chdir",
	"-d": "--dependency", "-e": "--error", "-F": "--nodefile", "-G": "--gpus", "-i": "--input", "-J": "--job-name", "-L": "--licenses",
	"-M": "--clusters", "-m": "--distribution", "-N": "--nodes", "-n": "--ntasks", "-o": "--output", "-p": "--partition", "-q": "--qos",
	"-S": "--core-spec", "-t": "--time", "-w": "--nodelist", "-x": "--exclude",
}

// Flags of sbatch that need no value. All other flags need one, because sbatch would use the next argument as the value.
var (
	switchFlags   = []string{"--contiguous", "--hold", "--ignore-pbs", "--overcommit", "--oversubscribe", "--quiet", "--reboot", "--spread-job", "--stepmgr", "--use-min-nodes", "--verbose"}
	ownSwitches   = []string{"--parsable", "--requeue", "--no-requeue"}
	optionalFlags = []string{"--exclusive", "--nice", "--no-kill"}
)

// fileFlags are flags of sbatch whose value is a file if it contains a slash.
var fileFlags = []string{"--nodelist", "--exclude"}

// allows reports whether pods may set a flag.
func (c Config) allows(name string) bool { return slices.Contains(c.allowed(), name) }

// allowed returns the flags that pods may set.
func (c Config) allowed() []string {
	if c.Flags == nil {
		return allowedByDefault
	}
	return c.Flags
}

// readFlags returns the flags of the annotation for the command line, each as --flag or --flag=value, and the
// flags that the node sets itself. The configuration must allow all others, and none can use another argument as
// its value.
func (c Config) readFlags(pod *corev1.Pod) (taken, overruled []string, err error) {
	for _, flag := range joined(strings.Fields(pod.Annotations[AnnotationFlags])) {
		name, _, _ := strings.Cut(flag, "=")
		if c.sets(pod, name) {
			overruled = append(overruled, flag)
			continue
		}
		if why := c.checkFlag(flag); why != "" {
			return nil, nil, errdefs.InvalidInputf("%s: %.40q: %s", flagsPath, flag, why)
		}
		taken = append(taken, flag)
	}
	return taken, overruled, nil
}

// sets reports whether the node sets a flag for a pod itself.
func (c Config) sets(pod *corev1.Pod, name string) bool {
	switch name {
	case "--time":
		return pod.Spec.ActiveDeadlineSeconds != nil
	case "--gres":
		_, _, gpus := c.size(pod)
		return gpus > 0
	}
	return !c.allows(name) && slices.Contains(nodeFlags, name)
}

// joined joins flags with their values: -t 30 and --time 30 become --time=30. A word that begins with - is no
// value.
func joined(words []string) (flags []string) {
	for i := 0; i < len(words); i++ {
		flag := words[i]
		long, short := shortFlags[flag]
		if short {
			flag = long
		}
		wants := short || strings.HasPrefix(flag, "--") && len(flag) > 2 && !strings.Contains(flag, "=") &&
			!slices.Contains(switchFlags, flag) && !slices.Contains(ownSwitches, flag) && !slices.Contains(optionalFlags, flag)
		if wants && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			i++
			flag += "=" + words[i]
		}
		flags = append(flags, flag)
	}
	return flags
}

// checkFlag returns why a flag of a pod is refused, or "" if it is not.
func (c Config) checkFlag(flag string) string {
	name, value, hasValue := strings.Cut(flag, "=")
	switch {
	case !c.allows(name):
		return "the flags that the node's configuration allows are " + strconv.Quote(strings.Join(c.allowed(), " ")) + ", each as --flag=value, or as --flag if it has no value"
	case strings.ContainsFunc(flag, func(r rune) bool { return r < ' ' || r > '~' }):
		return "want printable ASCII"
	case slices.Contains(switchFlags, name):
		if hasValue {
			return name + " has no value: write " + name
		}
	case !hasValue:
		if !slices.Contains(optionalFlags, name) {
			return "sbatch would take the next argument for its value: write " + name + "=VALUE"
		}
	case value == "":
		return "the value is empty: write " + name + "=VALUE"
	case strings.HasPrefix(value, "-"):
		if _, err := strconv.Atoi(value); err != nil {
			return "a value that begins with - must be a number"
		}
	case strings.Contains(value, "/") && slices.Contains(fileFlags, name):
		return "sbatch would read the file of that name: name nodes"
	}
	return ""
}

// instead maps annotations of interLink's Slurm plugin to advice for the user of a pod.
var instead = map[string]string{
	"pre-exec": "use an init container", "mpi-flags": "write mpiexec into the command of the container", "flavor": "ask for resources, and set flags",
	"singularity-commands": "no container is made by singularity", "singularity-mounts": "use volumes", "singularity-options": "no container is made by singularity",
	"enroot-mounts": "use volumes", "enroot-options": "no container is made by enroot",
}

// withoutEffect names the annotations and flags of a pod without an effect, with the reasons; "" if there are
// none.
func (c Config) withoutEffect(pod *corev1.Pod) string {
	var all []string
	if _, overruled, err := c.readFlags(pod); err == nil && len(overruled) > 0 {
		all = append(all, AnnotationFlags+fmt.Sprintf(": the node sets these flags itself: %.200s", strings.Join(overruled, " ")))
	}
	for _, key := range slices.Sorted(maps.Keys(pod.Annotations)) {
		name, ours := strings.CutPrefix(key, annotationPrefix)
		if !ours || key == AnnotationFlags || key == annotationImageRoot {
			continue
		}
		why := "this provider does not know it"
		if use, ok := instead[name]; ok {
			why = use
		}
		all = append(all, key+": "+why)
	}
	return strings.Join(all, "; ")
}
