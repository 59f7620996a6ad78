// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/oldfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// APIVersion and Kind of a configuration file of this provider.
const (
	APIVersion = "zun.virtual-kubelet.io/v1alpha1"
	Kind       = "ZunProviderConfiguration"
)

// diskGiven is the disk of a container: default_disk of Zun.
const diskGiven = 10 << 30

const (
	// seenWithin is the time within which lists of Zun show a new container. It includes the time that an unanswered request waits.
	seenWithin = 2 * time.Minute
	// earlierWithin is the same for a request of an earlier process, which has closed its connections.
	earlierWithin = time.Minute
)

// Config is the configuration of the provider. An environment variable such as VKUBELET_ZUN_REGION can also set
// a field that is one value or a list.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Cloud is the name of a cloud in CloudsFile, with the credentials. The file is read for each login.
	Cloud string `json:"cloud,omitempty" env:"OS_CLOUD"`
	// CloudsFile is a clouds.yaml. Default: the file of the current directory, of the user or of /etc/openstack.
	CloudsFile string `json:"cloudsFile,omitempty" env:"OS_CLIENT_CONFIG_FILE"`
	// Identity has the credentials, instead of Cloud.
	Identity Identity `json:"identity,omitzero"`
	// Region is the region of pods. Default: the region of the cloud, or the only one.
	Region string `json:"region,omitempty" env:"OS_REGION_NAME"`
	// Interface selects the endpoints of the catalog: public, internal or admin. Default: the interface of the
	// cloud, or public.
	Interface string `json:"interface,omitempty" env:"OS_INTERFACE"`
	// CAFile has the certificate authorities of endpoints. Default: the authorities of the cloud, or of this
	// machine.
	CAFile string `json:"caFile,omitempty" env:"OS_CACERT"`
	// ClusterName names the home cluster in Zun. Each cluster of a project needs its own name. The name must not
	// change while there are pods. Required.
	ClusterName string `json:"clusterName,omitempty"`
	// AvailabilityZone is the zone of pods. Default: Zun chooses.
	AvailabilityZone string `json:"availabilityZone,omitempty"`
	// Networks are the Neutron networks of pods, by name or ID. Default: Zun takes a network that the project
	// may use.
	Networks []string `json:"networks,omitempty"`
	// SecurityGroups are the security groups of pods, by name or ID. Default: the group of the project.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// EmptyDirGiB is the size of the Cinder volume of an emptyDir. Default: pods with an emptyDir are refused.
	EmptyDirGiB int `json:"emptyDirGiB,omitempty"`
	// Capsules lets pods with several containers run as capsules. Only old clouds can run capsules.
	Capsules bool `json:"capsules,omitempty"`
	// ReachesPods declares that this process has a route to the networks of pods. Default: pods with network probes are refused.
	ReachesPods bool `json:"reachesPods,omitempty"`
	// AllowPlainConsole lets exec and attach use a console proxy without TLS. The address of a session is a credential.
	AllowPlainConsole bool `json:"allowPlainConsole,omitempty"`
	// StatusRequests is the maximum number of requests per minute for single containers, in addition to lists. Default: 60.
	StatusRequests int `json:"statusRequests,omitempty"`
	// DefaultResources are the cpu and memory of containers without requests. Default: the defaults of Zun.
	DefaultResources corev1.ResourceList `json:"defaultResources,omitempty"`
	// Capacity is the capacity of the node: the quota of the project, or a part of it. Required.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// For tests. Zero selects the times of package poll and of the kubelet.
	busy, rest, idle, seenWithin, earlierWithin, backoff, startPause time.Duration
}

// Identity is a user or an application credential of Keystone.
type Identity struct {
	AuthURL                     string        `json:"authURL,omitempty" env:"OS_AUTH_URL"`
	ApplicationCredentialID     string        `json:"applicationCredentialID,omitempty" env:"OS_APPLICATION_CREDENTIAL_ID"`
	ApplicationCredentialSecret config.Secret `json:"applicationCredentialSecret,omitzero" env:"OS_APPLICATION_CREDENTIAL_SECRET"`
	Username                    string        `json:"username,omitempty" env:"OS_USERNAME"`
	UserDomainID                string        `json:"userDomainID,omitempty" env:"OS_USER_DOMAIN_ID,OS_DOMAIN_ID"`
	UserDomainName              string        `json:"userDomainName,omitempty" env:"OS_USER_DOMAIN_NAME,OS_DOMAIN_NAME"`
	Password                    config.Secret `json:"password,omitzero" env:"OS_PASSWORD"`
	ProjectID                   string        `json:"projectID,omitempty" env:"OS_PROJECT_ID,OS_TENANT_ID"`
	ProjectName                 string        `json:"projectName,omitempty" env:"OS_PROJECT_NAME,OS_TENANT_NAME"`
	ProjectDomainName           string        `json:"projectDomainName,omitempty" env:"OS_PROJECT_DOMAIN_NAME"`
}

// format is the format of a configuration file of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_ZUN", Unversioned: fromTOML}

// LoadConfig returns the configuration in the file at path; the environment overrides the file. An empty path
// means no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// fromTOML reads the file of the earlier provider openstack.
func fromTOML(name string, data []byte) (Config, error) {
	c := Config{Capacity: corev1.ResourceList{}}
	err := oldfile.Read(name, data, map[string]oldfile.Setter{
		"Region": oldfile.Text(&c.Region), "OperatingSystem": oldfile.Linux, "CPU": oldfile.Resource(c.Capacity, corev1.ResourceCPU),
		"Memory": oldfile.Resource(c.Capacity, corev1.ResourceMemory), "Pods": oldfile.Resource(c.Capacity, corev1.ResourcePods),
	})
	return c, err
}

// complete fills the defaults of c, and refuses invalid values with every reason.
func (c Config) complete() (Config, error) {
	problems := config.Problems{Provider: "zun"}
	problem := problems.Add
	i := c.Identity
	app, user := i.ApplicationCredentialSecret.IsSet() && i.ApplicationCredentialID != "", i.Password.IsSet() && i.Username != ""
	switch {
	case c.Cloud != "": // the clouds file has the other settings
	case i.AuthURL == "":
		problem("cloud: is missing: name a cloud of a clouds.yaml, or set identity.authURL and who asks there; the variables OS_CLOUD and OS_AUTH_URL do, too")
	case !app && !user:
		problem("identity: want an applicationCredentialID and applicationCredentialSecret, or a username and password")
	case !app && i.ProjectID == "" && i.ProjectName == "":
		problem("identity: a user needs a projectID or a projectName")
	}
	problems.ClusterName(c.ClusterName, "VKUBELET_ZUN_CLUSTER_NAME")
	if c.StatusRequests < 0 || c.EmptyDirGiB < 0 {
		problem("statusRequests and emptyDirGiB: want 0 or more")
	}
	c.StatusRequests = cmp.Or(c.StatusRequests, 60)
	if len(c.Capacity) == 0 {
		problem("capacity: is missing: cpu, memory and pods of the project's quota")
	}
	for name, quantity := range c.Capacity {
		if quantity.Sign() < 0 {
			problem("capacity: %s is %s, want 0 or more", name, quantity.String())
		}
	}
	c.Capacity = storage.Offer(c.Capacity, *resource.NewQuantity(diskGiven, resource.BinarySI))
	return c, problems.Err()
}
