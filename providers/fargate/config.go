// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/oldfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/websession"
)

// APIVersion and Kind of a configuration file of this provider.
const (
	APIVersion = "fargate.virtual-kubelet.io/v1alpha1"
	Kind       = "FargateProviderConfiguration"
)

// execProbeEvery is the default of ExecProbeEvery: each probe is a session of ECS Exec.
const execProbeEvery = 30 * time.Second

// Capacity providers for pods.
const (
	OnDemand = "FARGATE"
	Spot     = "FARGATE_SPOT"
)

// maxGroups is the maximum number of security groups of a task, and maxSubnets the maximum number of subnets.
const maxGroups, maxSubnets = 5, 16

// filesImage is the default of filesImage. Every pod with a token pulls it.
const filesImage = "public.ecr.aws/docker/library/busybox:stable"

// fileSystemID matches the ID of a file system, as in fileSystems of the configuration.
var fileSystemID = regexp.MustCompile(`^fs-[0-9a-f]{8,40}$`)

// snapshotID matches the ID of a snapshot of EBS, as in snapshots of the configuration.
var snapshotID = regexp.MustCompile(`^snap-[0-9a-f]{8,40}$`)

// largestVolume is the default of LargestVolume, in GiB: the maximum disk of a task.
const largestVolume = 200

// Config is the configuration of the provider. An environment variable such as VKUBELET_FARGATE_REGION can also
// set a field that is one value or a list. The AWS SDK finds the credentials on this machine; the configuration
// has none.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Region is the region of the cluster of ECS, such as eu-central-1. Required.
	Region string `json:"region,omitempty" env:"AWS_REGION"`
	// Endpoint is the URL of all services. Default: the endpoints of the region.
	Endpoint string `json:"endpoint,omitempty"`
	// CAFile has the certificate authorities of the endpoint. Default: the authorities of this machine.
	CAFile string `json:"caFile,omitempty"`
	// CredentialsFile is a file with keys, in the format of ~/.aws/credentials. Default: the places where the
	// tools of AWS look.
	CredentialsFile string `json:"credentialsFile,omitempty"`
	// Profile is the profile of the keys. Default: AWS_PROFILE, or default.
	Profile string `json:"profile,omitempty"`
	// Cluster is the name or ARN of the cluster of ECS. Default: default.
	Cluster string `json:"cluster,omitempty"`
	// ClusterID names the Kubernetes cluster in tags. Each Kubernetes cluster that uses the same cluster of ECS
	// needs its own ID. The ID must not change while there are pods. Required.
	ClusterID string `json:"clusterName,omitempty"`
	// Subnets are the IDs of the subnets of pods. Required.
	Subnets []string `json:"subnets,omitempty"`
	// SecurityGroups are IDs. Default: the security group of the VPC.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// PublicIP gives pods a public address too. Without it, a subnet needs another route to the registry.
	PublicIP bool `json:"publicIP,omitempty"`
	// PlatformVersion is the platform version of Fargate. Default: LATEST.
	PlatformVersion string `json:"platformVersion,omitempty"`
	// Architecture is ARM64 or X86_64. Default: X86_64.
	Architecture string `json:"architecture,omitempty"`
	// ExecutionRole is the ARN of the role for pulling images, writing logs and reading secrets. Required.
	ExecutionRole string `json:"executionRole,omitempty"`
	// TaskRoles are the ARNs of the roles that a pod may ask for with its annotation. Default: none.
	TaskRoles []string `json:"taskRoles,omitempty"`
	// FileSystems are the IDs of the file systems of EFS for pods, such as fs-0123456789abcdef0. Default: none.
	FileSystems []string `json:"fileSystems,omitempty"`
	// InfrastructureRole is the ARN of the role with which ECS makes volumes of EBS. Default: none, and pods
	// have no such volumes.
	InfrastructureRole string `json:"infrastructureRole,omitempty"`
	// Snapshots are the IDs of the snapshots of EBS that volumes of pods may start from, such as
	// snap-0123456789abcdef0. Default: none.
	Snapshots []string `json:"snapshots,omitempty"`
	// LargestVolume is the largest size of a volume of EBS. Default: 200Gi.
	LargestVolume resource.Quantity `json:"largestVolume,omitzero"`
	// ExecRole is the ARN of the role of pods that name no role. ExecRole and each of TaskRoles need the rights
	// of ECS Exec. Default: none, and there is no exec.
	ExecRole string `json:"execRole,omitempty"`
	// ExecProbeEvery is the shortest period of a startup or liveness probe by command. Each such probe is a
	// session of ECS Exec. Default: 30s.
	ExecProbeEvery metav1.Duration `json:"execProbeEvery,omitempty"`
	// FilesImage is an image with sh, base64 and tar. A container of this image writes the files of ConfigMaps,
	// Secrets, tokens and the downward API before the other containers start. Default: busybox of the public
	// registry of AWS, because Docker Hub limits the pulls of an address.
	FilesImage string `json:"filesImage,omitempty"`
	// Queue is the URL of a queue of SQS. A rule of EventBridge fills the queue with the changes of tasks.
	// Default: none, and the provider polls ECS.
	Queue string `json:"queue,omitempty"`
	// Reachable means that this process reaches pods by their addresses. Then this process probes pods by HTTP,
	// TCP and gRPC, and forwards ports. Otherwise such probes are refused. Default: true.
	Reachable *bool `json:"reachable,omitempty"`
	// LogGroup is an existing group of CloudWatch Logs. Default: none, and pods have no logs.
	LogGroup string `json:"logGroup,omitempty"`
	// Stats lets kubectl top show the usage of pods. The figures come from Container Insights of the cluster,
	// which writes them into CloudWatch Logs at a cost. Default: no.
	Stats bool `json:"stats,omitempty"`
	// CapacityProvider runs the pods that name no capacity provider: OnDemand or Spot. The cluster of ECS must
	// have this capacity provider. Default: the launch type FARGATE, which is on demand and works in every
	// cluster.
	CapacityProvider string `json:"capacityProvider,omitempty"`
	// RegistryCredentials are the ARNs of secrets of Secrets Manager with user name and password, by the host of the registry.
	RegistryCredentials map[string]string `json:"registryCredentials,omitempty"`
	// Capacity is the capacity of the node: the quota of the account, or a part of it. Required, except for
	// ephemeral-storage: 20Gi for each pod.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// format is the format of a configuration file of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_FARGATE", Renamed: map[string]string{"clusterID": "clusterName"}, Unversioned: fromTOML}

// LoadConfig returns the configuration in the file at path; the environment overrides the file. An empty path
// means no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// complete fills the defaults of c, and refuses invalid values with every reason.
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
	problems.ClusterName(c.ClusterID, "VKUBELET_FARGATE_CLUSTER_NAME")
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
	for field, arn := range map[string]string{"execRole": c.ExecRole, "infrastructureRole": c.InfrastructureRole} {
		if arn != "" && !role(arn) {
			problems.Add("%s: %q: want the ARN of a role", field, arn)
		}
	}
	problems.Wait("execProbeEvery", &c.ExecProbeEvery, execProbeEvery)
	problems.Each("taskRoles", c.TaskRoles, role, "the ARN of a role")
	problems.Each("fileSystems", c.FileSystems, fileSystemID.MatchString, "the ID of a file system of EFS, such as fs-0123456789abcdef0")
	problems.Each("snapshots", c.Snapshots, snapshotID.MatchString, "the ID of a snapshot of EBS, such as snap-0123456789abcdef0")
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

// safeURL reports whether nobody else can read requests to a URL. The requests have a signature, but not the
// key.
func safeURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && websession.IsLoopback(u.Hostname())
}

// fromTOML reads a configuration file of aws-fargate, with the defaults of aws-fargate.
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
		"Storage": oldfile.Ignore, // a resource called storage, which pods never request
	})
	return c, err
}
