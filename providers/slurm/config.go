// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"cmp"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// The header of a configuration file of this provider.
const (
	APIVersion = "slurm.virtual-kubelet.io/v1alpha1"
	Kind       = "SlurmProviderConfiguration"
)

// Config is the configuration of the provider. An environment variable, such as VKUBELET_SLURM_PARTITION, can
// also set a field with one value or a list.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// ClusterName is the name of the Kubernetes cluster in Slurm. It must be unique among the clusters whose
	// jobs belong to the same user, and must not change while there are pods. Required.
	ClusterName string `json:"clusterName,omitempty"`
	// SharedDir is a directory that this machine and the nodes of Slurm share, under the same path, owned by the
	// user that submits jobs. Required.
	SharedDir string `json:"sharedDir,omitempty"`
	// Partition is the partition for the jobs of every node that Partitions does not name. Default: the default
	// partition of Slurm.
	Partition string `json:"partition,omitempty"`
	// Partitions are the partitions of nodes, by the name of the node: one process has a node for each
	// partition.
	Partitions map[string]string `json:"partitions,omitempty"`
	// Account and QOS apply to the jobs. Default: the user's.
	Account string `json:"account,omitempty"`
	QOS     string `json:"qos,omitempty"`
	// Flags are the flags of sbatch that pods may set by the annotation slurm-job.vk.io/flags, for example
	// --constraint. With --partition, --account or --qos the pod's value wins over the node's. Default: --time;
	// an empty list allows none.
	Flags []string `json:"flags,omitempty"`
	// BinDir has the commands of Slurm. Default: PATH.
	BinDir string `json:"binDir,omitempty"`
	// SlurmConf is the file of Slurm's own configuration. Default: as the commands find it.
	SlurmConf string `json:"slurmConf,omitempty"`
	// Containers is the kind of the pods' containers: "" for programs of the Slurm nodes; podman for images,
	// which the program podman of the nodes pulls; unpack for images, which jobs pull and unpack themselves.
	Containers string `json:"containers,omitempty"`
	// SSH is the machine with Slurm's commands, BinDir and SlurmConf. Default: this machine.
	SSH *SSH `json:"ssh,omitempty"`
	// REST is a slurmrestd that replaces the commands, except srun for exec, attach and port-forward. Default:
	// the commands.
	REST *REST `json:"rest,omitempty"`
	// DefaultResources are the cpu and memory of pods without requests. Default: 1 CPU and 1Gi.
	DefaultResources corev1.ResourceList `json:"defaultResources,omitempty"`
	// OverheadMemory is the memory that a job requests beyond its containers: for the program that runs them,
	// and for volumes in memory. Default 128Mi.
	OverheadMemory resource.Quantity `json:"overheadMemory,omitempty"`
	// GPUResource is the resource by which pods request GPUs of Slurm (--gres=gpu). Default nvidia.com/gpu.
	GPUResource string `json:"gpuResource,omitempty"`
	// Capacity is the capacity of the node. Default: all nodes of the partition together, with 110 pods for
	// each, and 20Gi of ephemeral-storage for each pod.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// FastEvery is the interval of lists of jobs after a change, and SlowEvery at rest. Default 1s and 10s.
	FastEvery metav1.Duration `json:"fastEvery,omitempty"`
	SlowEvery metav1.Duration `json:"slowEvery,omitempty"`

	program string // for tests: the program in jobs; "": this program
}

// REST is a slurmrestd that replaces the commands sbatch, squeue, scancel and sinfo.
type REST struct {
	// URL is the address of slurmrestd: https://host, unix:///path, or, on this machine alone,
	// http://127.0.0.1:port. Required.
	URL string `json:"url,omitempty"`
	// Version is the version of its interface. Default v0.0.38, of Slurm 22.05.
	Version string `json:"version,omitempty"`
	// User owns the jobs. Default: the user of this process.
	User string `json:"user,omitempty"`
	// Token is the token of that user, from scontrol token. A file is read again when it changes. Default: none,
	// for a socket with a known owner.
	Token config.Secret `json:"token,omitzero"`
	// CAFile has the authorities for an https server. It is read again for each connection. Default: the
	// authorities of this machine.
	CAFile string `json:"caFile,omitempty"`
}

// restVersions are the supported versions.
var restVersions = []string{"v0.0.37", "v0.0.38"}

func (r REST) check(problem func(string, ...any)) {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		problem("rest.url: %v", err)
	case u.Scheme == "unix" && (u.Host != "" || u.Path == ""):
		problem("rest.url: %q: want unix:///path", r.URL)
	case u.Scheme != "unix" && u.Scheme != "http" && u.Scheme != "https" || u.Scheme != "unix" && u.Host == "":
		problem("rest.url: %q: want https://host, http://127.0.0.1:port or unix:///path", r.URL)
	case u.Scheme == "http" && !podjob.Loopback(u.Hostname()):
		problem("rest.url: %q: by http the token would travel as it is: want https, or an address of this machine, such as http://127.0.0.1:6820", r.URL)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "unix" && strings.Trim(u.Path, "/") != "":
		problem("rest.url: want nothing but the host and the port")
	}
	if v := cmp.Or(r.Version, restVersions[1]); v != restVersions[0] && v != restVersions[1] {
		problem("rest.version: %q: want one of %q", v, restVersions)
	}
	if r.User != "" && !word.MatchString(r.User) {
		problem("rest.user: %q: want the name of a user", r.User)
	}
}

// format describes the configuration files of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_SLURM", Renamed: map[string]string{"clusterID": "clusterName"}}

// LoadConfig reads the file at path, and overrides it by the environment. An empty path means no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// complete fills the defaults of c and refuses impossible values, with every reason.
func (c Config) complete() (Config, error) {
	problems := config.Problems{Provider: "slurm"}
	problems.ClusterName(c.ClusterName, "VKUBELET_SLURM_CLUSTER_NAME")
	if !filepath.IsAbs(c.SharedDir) || strings.ContainsAny(c.SharedDir, "%\\\n") {
		problems.Add("sharedDir: %q: want the absolute path of a directory that the nodes of Slurm have too, without %% and backslashes", c.SharedDir)
	}
	names := map[string]string{"partition": c.Partition, "account": c.Account, "qos": c.QOS}
	for node, partition := range c.Partitions {
		names["partitions."+node] = partition
	}
	for field, value := range names {
		if value != "" && !word.MatchString(value) {
			problems.Add("%s: %q: want a name of Slurm", field, value)
		}
	}
	if c.Containers != "" && c.Containers != podjob.RuntimePodman && c.Containers != podjob.RuntimeUnpack {
		problems.Add("containers: %q: want podman or unpack for images, or nothing for programs of the nodes", c.Containers)
	}
	if c.SSH != nil {
		c.SSH.check(problems.Add)
	}
	if c.REST != nil {
		c.REST.check(problems.Add)
	}
	for _, flag := range c.Flags {
		if why := checkAllowedFlag(flag); why != "" {
			problems.Add("flags: %q: %s", flag, why)
		}
	}
	if c.DefaultResources == nil {
		c.DefaultResources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	}
	if c.DefaultResources.Cpu().Sign() <= 0 || c.DefaultResources.Memory().Sign() <= 0 {
		problems.Add("defaultResources: want cpu and memory, both more than 0")
	}
	if c.OverheadMemory.Format == "" { // the setting is missing; 0 is a value
		c.OverheadMemory = resource.MustParse("128Mi")
	}
	if c.OverheadMemory.Sign() < 0 {
		problems.Add("overheadMemory: %s: want 0 or more", c.OverheadMemory.String())
	}
	c.GPUResource = cmp.Or(c.GPUResource, "nvidia.com/gpu")
	problems.Wait("fastEvery", &c.FastEvery, time.Second)
	problems.Wait("slowEvery", &c.SlowEvery, 10*time.Second)
	return c, problems.Err()
}

// partition returns the partition of a node.
func (c Config) partition(node string) string {
	if p, ok := c.Partitions[node]; ok {
		return p
	}
	return c.Partition
}

// reserved are the flags of sbatch that the provider sets, that would break its promises, or that name a file
// for sbatch.
var reserved = []string{
	"--job-name", "--comment", "--output", "--error", "--input", "--export", "--export-file", "--wrap", "--array", "--uid", "--gid", "--chdir", "--parsable",
	"--requeue", "--no-requeue", "--get-user-env", "--nodes", "--ntasks", "--cpus-per-task", "--mem", "--mem-per-cpu", "--mem-per-gpu", "--gres",
	"--test-only", "--wait", "--wait-all-nodes", "--clusters", "--propagate", "--container", "--signal", "--open-mode", "--dependency", "--begin",
	"--bbf", "--nodefile", "--help", "--usage", "--version",
}

// checkAllowedFlag returns why the configuration may not allow a flag to pods, or "" if it may. sbatch accepts the beginning of a flag
// as the flag.
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
