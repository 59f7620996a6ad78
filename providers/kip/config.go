// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/delivery"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/ec2"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/nova"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/qemu"
)

// APIVersion and Kind are the type of this provider's configuration file.
const (
	APIVersion = "kip.virtual-kubelet.io/v1alpha1"
	Kind       = "KipProviderConfiguration"
)

// Config is the configuration of the provider. An environment variable, such as VKUBELET_KIP_CLUSTER_NAME, can also set a field with a single value.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// ClusterName names this cluster in the tags of machines. Clusters with the same account need different names. The name must not change while pods
	// exist. Required.
	ClusterName string `json:"clusterName,omitempty"`
	// QEMU starts machines on this host, EC2 at Amazon EC2, and Nova at OpenStack. Exactly one of them is required.
	QEMU *QEMU        `json:"qemu,omitempty"`
	EC2  *ec2.Config  `json:"ec2,omitempty"`
	Nova *nova.Config `json:"nova,omitempty"`
	// Image is the boot image of machines: a directory from the command cell-image, an AMI, or the ID of an image in Glance. Required.
	Image string `json:"image,omitempty"`
	// SSH delivers the agent to machines of EC2 or Nova whose image has cloud-init and no agent. Default: the image has the agent.
	SSH *delivery.Config `json:"ssh,omitempty"`
	// Containers is unpack or programs. With unpack, the agents unpack images. With programs, pods run programs of the machines, without images. Default:
	// unpack.
	Containers string `json:"containers,omitempty"`
	// Types are the sizes of machines for pods. Default: a table of EC2 sizes. Required with QEMU and Nova, where the names are those of flavors.
	Types []Type `json:"types,omitempty"`
	// DefaultType is the type for pods without requests, limits and a type annotation. Default: the cheapest type with the fewest GPUs.
	DefaultType string `json:"defaultType,omitempty"`
	// VolumeGiB is the disk size of a machine. Default: the size of the image. An annotation of a pod can set up to MaxVolumeGiB; default: VolumeGiB.
	VolumeGiB    int64 `json:"volumeGiB,omitempty"`
	MaxVolumeGiB int64 `json:"maxVolumeGiB,omitempty"`
	// PrivateIPOnly starts machines without a public address.
	PrivateIPOnly bool `json:"privateIPOnly,omitempty"`
	// SecurityGroups and InstanceProfiles are the values that pods may select with annotations. Default: none.
	SecurityGroups   []string `json:"securityGroups,omitempty"`
	InstanceProfiles []string `json:"instanceProfiles,omitempty"`
	// Tags are additional tags of machines, for cost reports.
	Tags map[string]string `json:"tags,omitempty"`
	// Services declares that machines have routes to the pods of the cluster. Machines then get the Services of the cluster.
	Services bool `json:"services,omitempty"`
	// ClusterDNS are the DNS servers of the cluster, for pods with dnsPolicy ClusterFirst. Default, with Services: the Service kube-system/kube-dns.
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// Standby are the machines that wait for pods.
	Standby []Standby `json:"standby,omitempty"`
	// MaxMachines is the maximum number of machines, including standby machines. Default: 20; with QEMU: 4.
	MaxMachines int64 `json:"maxMachines,omitempty"`
	// MaxPricePerHour limits the price of all machines together for an hour, in the currency of the types. Default: no limit.
	MaxPricePerHour *resource.Quantity `json:"maxPricePerHour,omitempty"`
	// StartsPerMinute is the rate of machine starts. Up to a sixth of it may start at once, in addition to the rate. Default: 60.
	StartsPerMinute int64 `json:"startsPerMinute,omitempty"`
	// Capacity is the capacity of the node. Default: for each resource, MaxMachines times the largest amount of a type.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// AuthorityFile has the key of the certificate authority of the node and its machines. The node makes the file if it is missing. Without the key, a
	// node cannot talk to the machines that it has started. Default: authority.pem in Directory.
	AuthorityFile string `json:"authorityFile,omitempty"`
	// Directory has the files of the provider. Default: /var/lib/virtual-kubelet/kip.
	Directory string `json:"directory,omitempty"`
	// StartWithin is the time limit for a new machine's agent to answer. Default: 10m.
	StartWithin metav1.Duration `json:"startWithin,omitzero"`
	// SilentAfter is how long a joined agent may be unreachable while the cloud reports that its machine runs. Afterwards, the pod fails, and the
	// node stops the machine. The time does not count while no agent answers, because the node's own network may be down: the node never gives up its
	// only machine. Default: 15m.
	SilentAfter metav1.Duration `json:"silentAfter,omitzero"`
	// KeepEnded is the time that a machine stays after its pod has ended, for the logs. Default: 1m.
	KeepEnded *metav1.Duration `json:"keepEnded,omitempty"`
	// OrphanAfter is the time after which a machine without a running pod and without contact to a node ends itself. Default: 30m.
	OrphanAfter metav1.Duration `json:"orphanAfter,omitzero"`
	// AbandonedAfter is the same time for a machine with a running pod. Default: the machine keeps running.
	AbandonedAfter metav1.Duration `json:"abandonedAfter,omitzero"`
}

// QEMU configures machines on this host.
type QEMU struct {
	// Program is the QEMU program. Default: qemu-system-x86_64.
	Program string `json:"program,omitempty"`
	// Accel is kvm or tcg. Default: kvm if it works, else tcg.
	Accel string `json:"accel,omitempty"`
	// Egress must be false: see complete.
	Egress bool `json:"egress,omitempty"`
}

// Type is a size of machines.
type Type struct {
	Name string            `json:"name"`
	CPU  resource.Quantity `json:"cpu"`
	// Memory is the memory for the pod. The machine needs more: see machine.Reserve. QEMU gets the sum.
	Memory resource.Quantity `json:"memory"`
	// GPUs is the number of GPUs, and GPUResource the name of the resource that pods request. Default: nvidia.com/gpu.
	GPUs        int64  `json:"gpus,omitempty"`
	GPUResource string `json:"gpuResource,omitempty"`
	// Price and SpotPrice are prices for an hour. Among types with as many GPUs, a type without a price comes last.
	Price     *resource.Quantity `json:"price,omitempty"`
	SpotPrice *resource.Quantity `json:"spotPrice,omitempty"`
}

// Standby is a number of machines of a type that wait for pods.
type Standby struct {
	Type  string `json:"type"`
	Count int64  `json:"count"`
	Spot  bool   `json:"spot,omitempty"`
}

var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_KIP"}

// complete fills the defaults of c, and refuses an impossible configuration with every reason.
func (c Config) complete() (Config, error) {
	problems := config.Problems{Provider: "kip"}
	problem := problems.Add
	if len(validation.IsDNS1123Label(c.ClusterName)) > 0 {
		problem("clusterName: %q: want a name for this cluster, such as home-1: set it in the file of --provider-config or in VKUBELET_KIP_CLUSTER_NAME", c.ClusterName)
	}
	c.Directory = cmp.Or(c.Directory, "/var/lib/virtual-kubelet/kip")
	c.AuthorityFile = cmp.Or(c.AuthorityFile, filepath.Join(c.Directory, "authority.pem"))
	most := int64(20)
	clouds := 0
	for _, is := range []bool{c.QEMU != nil, c.EC2 != nil, c.Nova != nil} {
		if is {
			clouds++
		}
	}
	switch {
	case clouds != 1:
		problem("qemu, ec2, nova: want one of them; qemu: {} starts machines on this host")
	case c.Nova != nil:
		if c.Nova.NetworkID == "" {
			problem("nova.networkID: want the network of machines")
		}
		if len(c.InstanceProfiles) > 0 || slices.ContainsFunc(c.Standby, func(s Standby) bool { return s.Spot }) {
			problem("instanceProfiles, standby: Nova has neither instance profiles nor spot machines")
		}
	case c.QEMU != nil:
		most = 4
		if c.QEMU.Egress {
			problem("qemu.egress: the user network of QEMU would show machines every service on the loopback of this host, at 10.0.2.2: remove the field; this node sends machines the images of their pods without it, and machines of ec2 have a network")
		}
	case c.EC2.SubnetID == "":
		problem("ec2.subnetID: want the subnet of machines")
	}
	if len(c.Types) == 0 && c.EC2 != nil {
		c.Types = ec2Types()
	}
	if c.SSH != nil {
		ssh := *c.SSH
		ssh.User, ssh.Port = cmp.Or(ssh.User, "root"), cmp.Or(ssh.Port, 22)
		if c.SSH = &ssh; ssh.Agent == "" || c.QEMU != nil {
			problem("ssh: want agent, the file vk-cell of `make cell-image`, and machines of ec2 or nova; the image of qemu has the agent")
		}
		if c.Containers == programs {
			problem("ssh: a stock image has services that programs of pods could command: want containers: unpack")
		}
	}
	if c.Image == "" {
		problem("image: want the image that machines boot")
	}
	if c.Containers = cmp.Or(c.Containers, podjob.RuntimeUnpack); c.Containers != podjob.RuntimeUnpack && c.Containers != programs {
		problem("containers: %q: want unpack or programs", c.Containers)
	}
	c.MaxMachines, c.StartsPerMinute = cmp.Or(c.MaxMachines, most), cmp.Or(c.StartsPerMinute, 60)
	c.MaxVolumeGiB = max(c.MaxVolumeGiB, c.VolumeGiB)
	c.StartWithin.Duration = cmp.Or(c.StartWithin.Duration, 10*time.Minute)
	c.SilentAfter.Duration = cmp.Or(c.SilentAfter.Duration, 15*time.Minute)
	c.OrphanAfter.Duration = cmp.Or(c.OrphanAfter.Duration, cell.DefaultOrphanAfter)
	if c.KeepEnded == nil {
		c.KeepEnded = &metav1.Duration{Duration: time.Minute}
	}
	if c.MaxMachines < 0 || c.StartsPerMinute < 0 || c.VolumeGiB < 0 {
		problem("maxMachines, startsPerMinute and volumeGiB: want no number below 0")
	}
	for name, d := range map[string]time.Duration{
		"startWithin": c.StartWithin.Duration, "silentAfter": c.SilentAfter.Duration, "orphanAfter": c.OrphanAfter.Duration, "abandonedAfter": c.AbandonedAfter.Duration, "keepEnded": c.KeepEnded.Duration,
	} {
		if d < 0 || d > 0 && d < time.Second && name != "keepEnded" {
			problem("%s: %s: want a time of at least one second", name, d)
		}
	}
	if c.Services && c.QEMU != nil {
		problem("services: machines of QEMU reach no network, and so no pods of the cluster: remove the field, or use ec2 or nova")
	}
	if len(c.ClusterDNS) > 0 && !c.Services {
		problem("clusterDNS: machines reach the cluster only with services: true")
	}
	c.checkTypes(problem)
	if len(c.Capacity) == 0 {
		c.Capacity = c.offers()
	}
	return c, problems.Err()
}

func (c Config) checkTypes(problem func(string, ...any)) {
	if len(c.Types) == 0 {
		problem("types: want the sizes of machines that pods may get")
	}
	seen := map[string]bool{}
	for i, t := range c.Types {
		if t.Name == "" || seen[t.Name] || t.CPU.Sign() <= 0 || t.Memory.Sign() <= 0 || t.GPUs < 0 {
			problem("types[%d]: %q: want a name that no other type has, and cpu and memory above 0", i, t.Name)
		}
		seen[t.Name] = true
	}
	if c.DefaultType != "" && !seen[c.DefaultType] {
		problem("defaultType: %q: is not one of types", c.DefaultType)
	}
	waiting := int64(0)
	for i, s := range c.Standby {
		if !seen[s.Type] || s.Count < 1 {
			problem("standby[%d]: want one of types, and a count above 0", i)
		}
		waiting += s.Count
	}
	if waiting > c.MaxMachines {
		problem("standby: %d machines would wait, and maxMachines is %d", waiting, c.MaxMachines)
	}
}

// offers returns the default capacity of the node.
func (c Config) offers() corev1.ResourceList {
	most := corev1.ResourceList{}
	for _, t := range c.Types {
		r := corev1.ResourceList{corev1.ResourceCPU: t.CPU, corev1.ResourceMemory: t.Memory}
		if t.GPUs > 0 {
			r[corev1.ResourceName(cmp.Or(t.GPUResource, defaultGPU))] = *resource.NewQuantity(t.GPUs, resource.DecimalSI)
		}
		for name, q := range r {
			if have := most[name]; q.Cmp(have) > 0 {
				most[name] = q
			}
		}
	}
	most[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(cmp.Or(c.VolumeGiB, 8)<<30, resource.BinarySI)
	for name, q := range most {
		q = q.DeepCopy()
		q.Mul(c.MaxMachines)
		most[name] = q
	}
	most[corev1.ResourcePods] = *resource.NewQuantity(c.MaxMachines, resource.DecimalSI)
	return most
}

const defaultGPU = "nvidia.com/gpu"

// typeNamed returns the type with a name.
func (c Config) typeNamed(name string) (Type, error) {
	if i := slices.IndexFunc(c.Types, func(t Type) bool { return t.Name == name }); i >= 0 {
		return c.Types[i], nil
	}
	return Type{}, fmt.Errorf("%q is not one of types in the provider's configuration", name)
}

// open returns the driver for the cloud of the configuration, and its pace.
func (c Config) open(ctx context.Context) (machine.Driver, pace, error) {
	if c.QEMU != nil {
		d, err := qemu.New(qemu.Config{
			Dir: filepath.Join(c.Directory, "machines"), Image: c.Image, Program: c.QEMU.Program, Accel: c.QEMU.Accel,
		})
		at := usual
		at.seen, at.earlier = 10*time.Second, -1 // a list shows a machine as soon as its start returns
		return d, at, err
	}
	if c.Nova != nil {
		d, err := nova.New(*c.Nova, cell.Port)
		return d, usual, err
	}
	d, err := ec2.New(ctx, *c.EC2, cell.Port)
	return d, usual, err
}

const programs = "programs"

// runtime returns the runtime's name in package podjob.
func (c Config) runtime() string {
	if c.Containers == programs {
		return ""
	}
	return c.Containers
}

// pace is the timing of a driver.
type pace struct {
	busy, rest    time.Duration // between lists
	seen, earlier time.Duration // until lists show a machine of this process, and of an earlier process
	look          time.Duration // between checks for due work
	again         time.Duration // until the first retry with an agent that did not answer; doubles up to 5 s
	end           time.Duration // for a machine to end a pod after its grace period
	stopAgain     time.Duration // until a retry of a stop that the cloud has not done
	speak         time.Duration // for which the first list waits for agents
}

// usual is the pace for a cloud.
var usual = pace{
	busy: 2 * time.Second, rest: 5 * time.Second, seen: 2 * time.Minute, earlier: 2 * time.Minute, look: time.Second, again: 200 * time.Millisecond,
	end: 20 * time.Second, stopAgain: time.Minute, speak: 3 * time.Second,
}

// ec2Types returns general-purpose sizes of EC2, without the memory that machine.Reserve needs, and with prices for an hour in us-east-1 in US
// dollars. Source of CPUs, memory and prices: the data of elotl/kip (pkg/util/instanceselector/aws_instance_data.go, 2021); read 2026-11-28. In that
// data, all sizes of a family have the same price per CPU.
func ec2Types() []Type {
	var all []Type
	for _, f := range []struct {
		family string
		gib    int64 // per CPU
		price  int64 // per CPU, in millionths
	}{{"c5", 2, 42500}, {"m5", 4, 48000}, {"r5", 8, 63000}} {
		for _, s := range []struct {
			name string
			cpus int64
		}{{"large", 2}, {"xlarge", 4}, {"2xlarge", 8}, {"4xlarge", 16}} {
			all = append(all, Type{
				Name: f.family + "." + s.name, CPU: *resource.NewQuantity(s.cpus, resource.DecimalSI), Memory: forPods(s.cpus * f.gib << 10),
				Price: resource.NewScaledQuantity(f.price*s.cpus, resource.Micro),
			})
		}
	}
	for _, s := range []struct {
		name             string
		cpus, mib, price int64 // price in millionths
		gpus             int64
	}{
		{"t3.nano", 2, 512, 5200, 0}, {"t3.micro", 2, 1 << 10, 10400, 0}, {"t3.small", 2, 2 << 10, 20800, 0}, {"t3.medium", 2, 4 << 10, 41600, 0},
		{"t3.large", 2, 8 << 10, 83200, 0}, {"t3.xlarge", 4, 16 << 10, 166400, 0}, {"t3.2xlarge", 8, 32 << 10, 332800, 0},
		{"g4dn.2xlarge", 8, 32 << 10, 752000, 1}, {"g4dn.12xlarge", 48, 192 << 10, 3912000, 4}, {"p3.8xlarge", 32, 244 << 10, 12240000, 4},
	} {
		all = append(all, Type{
			Name: s.name, CPU: *resource.NewQuantity(s.cpus, resource.DecimalSI), Memory: forPods(s.mib),
			Price: resource.NewScaledQuantity(s.price, resource.Micro), GPUs: s.gpus,
		})
	}
	slices.SortFunc(all, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// forPods returns the memory for the pod of a machine with mib MiB of memory.
func forPods(mib int64) resource.Quantity {
	return *resource.NewQuantity(mib<<20-machine.Reserve(mib<<20), resource.BinarySI)
}
