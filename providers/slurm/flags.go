// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// AnnotationFlags of a pod has flags for sbatch, of those that the configuration allows: --constraint=fast --nice=10.
const AnnotationFlags = "slurm-job.vk.io/flags"

// flagsPath is where a pod has its flags.
const flagsPath = "metadata.annotations[" + AnnotationFlags + "]"

// reserved are the flags of sbatch that the provider sets, that lead out of what it promises, or that name a file which sbatch reads.
var reserved = []string{
	"--job-name", "--comment", "--output", "--error", "--input", "--export", "--export-file", "--wrap", "--array", "--uid", "--gid", "--chdir", "--parsable",
	"--requeue", "--no-requeue", "--get-user-env", "--partition", "--nodes", "--ntasks", "--cpus-per-task", "--mem", "--time", "--gres", "--account", "--qos",
	"--test-only", "--wait", "--wait-all-nodes", "--clusters", "--propagate", "--container", "--signal", "--open-mode", "--dependency", "--begin",
	"--bbf", "--nodefile", "--help", "--usage", "--version",
}

// Flags of sbatch that may stand without a value. All others need one: sbatch would take the next argument for it.
var (
	switchFlags   = []string{"--contiguous", "--hold", "--ignore-pbs", "--overcommit", "--oversubscribe", "--quiet", "--reboot", "--spread-job", "--stepmgr", "--use-min-nodes", "--verbose"}
	optionalFlags = []string{"--exclusive", "--nice", "--no-kill"}
)

// fileFlags are flags of sbatch whose value is a file if it has a slash.
var fileFlags = []string{"--nodelist", "--exclude"}

// checkAllowedFlag returns why the configuration may not allow pods a flag; "" if it may. sbatch takes the beginning of a flag for the flag.
func checkAllowedFlag(flag string) string {
	switch {
	case !strings.HasPrefix(flag, "--") || !word.MatchString(flag[2:]):
		return "want a long flag of sbatch, such as --constraint"
	case slices.Contains(reserved, flag):
		return "the provider sets it, it names a file, or it would take the job out of the provider's hands"
	}
	if i := slices.IndexFunc(reserved, func(r string) bool { return strings.HasPrefix(r, flag) }); i >= 0 {
		return "sbatch may take it for " + reserved[i] + ", which pods may not set"
	}
	return ""
}

// flags returns the flags of the annotation, if the configuration allows all of them and none can take another argument for its value.
func (c Config) flags(pod *corev1.Pod) ([]string, error) {
	flags := strings.Fields(pod.Annotations[AnnotationFlags])
	for _, flag := range flags {
		if why := c.checkFlag(flag); why != "" {
			return nil, errdefs.InvalidInputf("%s: %.40q: %s", flagsPath, flag, why)
		}
	}
	return flags, nil
}

// checkFlag returns why a flag of a pod is refused; "" if it is not.
func (c Config) checkFlag(flag string) string {
	name, value, hasValue := strings.Cut(flag, "=")
	switch {
	case !slices.Contains(c.Flags, name):
		return "the flags that the node's configuration allows are " + strconv.Quote(strings.Join(c.Flags, " ")) + ", each as --flag=value, or as --flag if it has no value"
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
