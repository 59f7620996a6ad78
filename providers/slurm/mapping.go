// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// script is the script of every job; its arguments are the program and the directory. sbatch passes on the token of the submitting
// user, which a pod must not get. GOGC lets the heap of the supervisor grow, because nearly everything that it allocates at its start
// stays. GOMAXPROCS limits it to one thread at a time, because it has little to do.
const script = scriptBegin + "\"$1\"" + scriptRun + "\"$2\"\n"

// Every script of jobs is scriptBegin, the program, scriptRun and the directory of the pod.
const (
	scriptBegin = "#!/bin/sh\nunset SLURM_JWT\nGOGC=800 GOMAXPROCS=1 exec "
	scriptRun   = " " + enter.Marker + " " + enter.ModeRun + " " + job.Host + " "
)

// identity is the content of a job's comment.
type identity struct {
	Cluster, Node, Namespace, Name string
	UID                            types.UID
}

// commentHead begins the comment of each job. None of the names has a slash.
const commentHead = "virtual-kubelet"

func (i identity) comment() string {
	return strings.Join([]string{commentHead, i.Cluster, i.Node, i.Namespace, i.Name, string(i.UID)}, "/")
}

// parseComment parses the result of comment.
func parseComment(text string) (identity, bool) {
	p := strings.Split(strings.TrimSpace(text), "/")
	if len(p) != 6 || p[0] != commentHead {
		return identity{}, false
	}
	return identity{p[1], p[2], p[3], p[4], types.UID(p[5])}, true
}

// jobName returns the name by which the job of a pod is found.
func jobName(uid types.UID) string { return "vk-" + string(uid) }

// endOfFlags precedes the script. If the last flag lacks its value, sbatch uses endOfFlags as the value, and not the script.
const endOfFlags = "--"

// submission returns the command line of sbatch for a pod. dir is the pod's directory, program and script run in
// the job.
func (c Config) submission(pod *corev1.Pod, id identity, dir, program, script string) ([]string, error) {
	cpus, megabytes, gpus := c.size(pod)
	args := []string{
		"--parsable", "--no-requeue", "--job-name=" + jobName(id.UID), "--comment=" + id.comment(),
		"--output=" + dir + "/" + job.OutputFile, "--open-mode=append", "--chdir=/",
		"--nodes=1", "--ntasks=1", fmt.Sprintf("--cpus-per-task=%d", cpus), fmt.Sprintf("--mem=%dM", megabytes),
	}
	for flag, value := range map[string]string{"--partition=": c.partition(id.Node), "--account=": c.Account, "--qos=": c.QOS} {
		if value != "" {
			args = append(args, flag+value)
		}
	}
	slices.Sort(args[11:])
	if gpus > 0 {
		args = append(args, fmt.Sprintf("--gres=gpu:%d", gpus))
	}
	if s := pod.Spec.ActiveDeadlineSeconds; s != nil {
		args = append(args, fmt.Sprintf("--time=%d", *s/60+2)) // in minutes, rounded up; the job itself enforces the seconds
	}
	flags, _, err := c.readFlags(pod)
	return append(append(args, flags...), endOfFlags, script, program, dir), err
}
