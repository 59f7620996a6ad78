// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"cmp"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/oldfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// What a configuration file of this provider says about itself.
const (
	APIVersion = "fargate.virtual-kubelet.io/v1alpha1"
	Kind       = "FargateProviderConfiguration"
)

// execProbeEvery is the default of ExecProbeEvery: each probe is a session of ECS Exec.
const execProbeEvery = 30 * time.Second

// Capacity providers that run pods.
const (
	OnDemand = "FARGATE"
	Spot     = "FARGATE_SPOT"
)

// maxGroups is how many security groups a task may have, and maxSubnets how many subnets.
const maxGroups, maxSubnets = 5, 16

// filesImage is the default of filesImage. Every pod with a token pulls it.
const filesImage = "public.ecr.aws/docker/library/busybox:stable"

// fileSystemID is the ID of one, as fileSystems of the configuration has it.
var fileSystemID = regexp.MustCompile(`^fs-[0-9a-f]{8,40}$`)

// snapshotID is the ID of a snapshot of EBS, as snapshots of the configuration has it.
var snapshotID = regexp.MustCompile(`^snap-[0-9a-f]{8,40}$`)

// largestVolume is the default of LargestVolume, in GiB: as much as the disk of a task has at most.
const largestVolume = 200

// Config is the configuration of the provider. A field that is one value or a list can also be set by an environment variable, such
// as VKUBELET_FARGATE_REGION. Credentials are those that the tools of AWS find on this machine; none are here.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Region is that of the cluster of ECS, such as eu-central-1. Required.
	Region string `json:"region,omitempty" env:"AWS_REGION"`
	// Endpoint is the URL of all services that are asked. Default: those of the region.
	Endpoint string `json:"endpoint,omitempty"`
	// CAFile has the authorities of the endpoint. Default: those of this machine.
	CAFile string `json:"caFile,omitempty"`
	// CredentialsFile is a file with keys, as the tools of AWS write ~/.aws/credentials. Default: what those tools find.
	CredentialsFile string `json:"credentialsFile,omitempty"`
	// Profile is that of the keys. Default: AWS_PROFILE, or default.
	Profile string `json:"profile,omitempty"`
	// Cluster is the name or ARN of the cluster of ECS. Default: default.
	Cluster string `json:"cluster,omitempty"`
	// ClusterID names the Kubernetes cluster in tags. No two that use one cluster of ECS may have the same, and it must not change while
	// there are pods. Required.
	ClusterID string `json:"clusterName,omitempty"`
	// Subnets are the IDs of those that pods get their addresses in. Required.
	Subnets []string `json:"subnets,omitempty"`
	// SecurityGroups are IDs. Default: that of the VPC.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// PublicIP gives pods a public address too: without it a subnet needs a way to the registry.
	PublicIP bool `json:"publicIP,omitempty"`
	// PlatformVersion is that of Fargate. Default: LATEST.
	PlatformVersion string `json:"platformVersion,omitempty"`
	// Architecture is ARM64 or X86_64. Default: X86_64.
	Architecture string `json:"architecture,omitempty"`
	// ExecutionRole is the ARN of the role that pulls images, writes logs and reads secrets. Required.
	ExecutionRole string `json:"executionRole,omitempty"`
	// TaskRoles are the ARNs of roles that pods may have by their annotation. Default: none.
	TaskRoles []string `json:"taskRoles,omitempty"`
	// FileSystems are the IDs of the file systems of EFS that pods may mount, such as fs-0123456789abcdef0. Default: none.
	FileSystems []string `json:"fileSystems,omitempty"`
	// InfrastructureRole is the ARN of the role by which ECS makes volumes of EBS. Default: none, and pods have no such volumes.
	InfrastructureRole string `json:"infrastructureRole,omitempty"`
	// Snapshots are the IDs of the snapshots of EBS that volumes of pods may be made from, such as snap-0123456789abcdef0. Default: none.
	Snapshots []string `json:"snapshots,omitempty"`
	// LargestVolume is the largest size that a pod may ask for a volume of EBS. Default: 200Gi.
	LargestVolume resource.Quantity `json:"largestVolume,omitzero"`
	// ExecRole is the ARN of the role of pods that name none. It needs the rights of ECS Exec, and so does each of TaskRoles. Default:
	// none, and there is no exec.
	ExecRole string `json:"execRole,omitempty"`
	// ExecProbeEvery is the shortest period of a startup or liveness probe by command, each of which is a session of ECS Exec. Default: 30s.
	ExecProbeEvery metav1.Duration `json:"execProbeEvery,omitempty"`
	// FilesImage is an image with sh, base64 and tar, of which a container writes the files of ConfigMaps, Secrets, tokens and the downward
	// API before the others start. Default: busybox of the public registry of AWS, as Docker Hub limits how often an address pulls.
	FilesImage string `json:"filesImage,omitempty"`
	// Queue is the URL of a queue of SQS that a rule of EventBridge fills with the changes of tasks. Default: none, and ECS is asked.
	Queue string `json:"queue,omitempty"`
	// Reachable says that this process reaches pods by their addresses: then it probes them by HTTP, TCP and gRPC, and forwards ports.
	// Where it does not, such probes are refused. Default: true.
	Reachable *bool `json:"reachable,omitempty"`
	// LogGroup is the group of CloudWatch Logs, which must be there. Default: none, and pods have no logs.
	LogGroup string `json:"logGroup,omitempty"`
	// Stats lets kubectl top show what pods use, by what Container Insights of the cluster writes into CloudWatch Logs, which costs. Default: no.
	Stats bool `json:"stats,omitempty"`
	// CapacityProvider is what pods run on that do not say: OnDemand or Spot. The cluster of ECS must have it. Default: the launch type FARGATE,
	// which is on demand, and which every cluster takes.
	CapacityProvider string `json:"capacityProvider,omitempty"`
	// RegistryCredentials are the ARNs of secrets of Secrets Manager with user name and password, by the host of the registry.
	RegistryCredentials map[string]string `json:"registryCredentials,omitempty"`
	// Capacity is what the node offers: the quota of the account, or a part of it. Required, but for ephemeral-storage: 20Gi for each pod.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// format is what a configuration file of this provider looks like.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_FARGATE", Renamed: map[string]string{"clusterID": "clusterName"}, Unversioned: fromTOML}

// LoadConfig returns what the file at path says, and the environment above it. An empty path is no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// complete fills the defaults of c and refuses what cannot be, with every reason.
func (c Config) complete() (Config, error) {
	problems := config.Problems{Provider: "fargate"}
	if c.Region == "" {
		problems.Add("region: is missing: name that of the cluster of ECS, such as eu-central-1")
	}
	if c.Endpoint != "" && !safeURL(c.Endpoint) {
		problems.Add("endpoint: %q: want an URL that begins with https://, or with http:// for this machine itself", c.Endpoint)
	}
	if c.Queue != "" && !safeURL(c.Queue) {
		problems.Add("queue: %q: want the URL of a queue of SQS, such as https://sqs.eu-central-1.amazonaws.com/123456789012/tasks", c.Queue)
	}
	if len(validation.IsDNS1123Label(c.ClusterID)) > 0 {
		problems.Add("clusterName: %q: want a name for the Kubernetes cluster, such as home-1: set it in the file of --provider-config or in VKUBELET_FARGATE_CLUSTER_NAME", c.ClusterID)
	}
	c.Cluster, c.FilesImage = cmp.Or(c.Cluster, "default"), cmp.Or(c.FilesImage, filesImage)
	c.PlatformVersion, c.Architecture = cmp.Or(c.PlatformVersion, "LATEST"), cmp.Or(c.Architecture, "X86_64")
	if len(c.Subnets) == 0 || len(c.Subnets) > maxSubnets {
		problems.Add("subnets: %d: want the IDs of 1 to %d of the VPC that pods are in", len(c.Subnets), maxSubnets)
	}
	if len(c.SecurityGroups) > maxGroups {
		problems.Add("securityGroups: %d: a task may have %d", len(c.SecurityGroups), maxGroups)
	}
	if c.Architecture != "X86_64" && c.Architecture != "ARM64" {
		problems.Add("architecture: %q: want X86_64 or ARM64", c.Architecture)
	}
	if c.CapacityProvider != "" && !capacityProvider(c.CapacityProvider) {
		problems.Add("capacityProvider: %q: want %s or %s", c.CapacityProvider, OnDemand, Spot)
	}
	if !role(c.ExecutionRole) {
		problems.Add("executionRole: %q: want the ARN of a role, such as arn:aws:iam::123456789012:role/ecsTaskExecutionRole: set it in the file of --provider-config or in VKUBELET_FARGATE_EXECUTION_ROLE", c.ExecutionRole)
	}
	if c.ExecRole != "" && !role(c.ExecRole) {
		problems.Add("execRole: %q: want the ARN of a role", c.ExecRole)
	}
	if c.InfrastructureRole != "" && !role(c.InfrastructureRole) {
		problems.Add("infrastructureRole: %q: want the ARN of a role", c.InfrastructureRole)
	}
	if c.ExecProbeEvery.Duration < 0 {
		problems.Add("execProbeEvery: is %s, want 0 for the default, or more", c.ExecProbeEvery.Duration)
	}
	c.ExecProbeEvery.Duration = cmp.Or(c.ExecProbeEvery.Duration, execProbeEvery)
	for i, r := range c.TaskRoles {
		if !role(r) {
			problems.Add("taskRoles[%d]: %q: want the ARN of a role", i, r)
		}
	}
	for i, id := range c.FileSystems {
		if !fileSystemID.MatchString(id) {
			problems.Add("fileSystems[%d]: %q: want the ID of a file system of EFS, such as fs-0123456789abcdef0", i, id)
		}
	}
	for i, id := range c.Snapshots {
		if !snapshotID.MatchString(id) {
			problems.Add("snapshots[%d]: %q: want the ID of a snapshot of EBS, such as snap-0123456789abcdef0", i, id)
		}
	}
	if c.LargestVolume.IsZero() {
		c.LargestVolume = *resource.NewQuantity(largestVolume*sizing.Gi, resource.BinarySI)
	}
	if c.LargestVolume.Value() < sizing.Gi {
		problems.Add("largestVolume: is %s, want 1Gi or more, or nothing for the default", c.LargestVolume.String())
	}
	for registry, arn := range c.RegistryCredentials {
		if !strings.HasPrefix(arn, "arn:") || !strings.Contains(arn, ":secretsmanager:") {
			problems.Add("registryCredentials[%s]: want the ARN of a secret of Secrets Manager", registry)
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if q := c.Capacity[name]; q.Sign() <= 0 {
			problems.Add("capacity.%s: is missing: say how much the node offers", name)
		}
	}
	c.Capacity = storage.Offer(c.Capacity, *resource.NewQuantity(storageGiven*sizing.Gi, resource.BinarySI))
	return c, problems.Err()
}

func (c Config) reachable() bool { return c.Reachable == nil || *c.Reachable }

func capacityProvider(name string) bool { return name == OnDemand || name == Spot }

// role reports whether a text looks like the ARN of a role.
func role(arn string) bool {
	parts := strings.SplitN(arn, ":", 6)
	return len(parts) == 6 && parts[0] == "arn" && parts[2] == "iam" && strings.HasPrefix(parts[5], "role/")
}

// safeURL reports whether requests to an URL, which have a signature and not the key, are read by nobody else.
func safeURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// fromTOML reads the file that aws-fargate has, with the defaults of that.
func fromTOML(name string, data []byte) (Config, error) {
	c := Config{Capacity: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("20"), corev1.ResourceMemory: resource.MustParse("40Gi"), corev1.ResourcePods: resource.MustParse("20"),
	}}
	err := oldfile.Read(name, data, map[string]oldfile.Setter{
		"Region": oldfile.Text(&c.Region), "ClusterName": oldfile.Text(&c.Cluster), "Subnets": oldfile.List(&c.Subnets),
		"SecurityGroups": oldfile.List(&c.SecurityGroups), "AssignPublicIPv4Address": oldfile.Bool(&c.PublicIP),
		"ExecutionRoleArn": oldfile.Text(&c.ExecutionRole), "CloudWatchLogGroupName": oldfile.Text(&c.LogGroup),
		"PlatformVersion": oldfile.Text(&c.PlatformVersion), "OperatingSystem": oldfile.Linux,
		"CPU": oldfile.Resource(c.Capacity, corev1.ResourceCPU), "Memory": oldfile.Resource(c.Capacity, corev1.ResourceMemory),
		"Pods":    oldfile.Resource(c.Capacity, corev1.ResourcePods),
		"Storage": oldfile.Ignore, // a resource called storage, for which no pod asks
	})
	return c, err
}
