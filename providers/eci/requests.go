// SPDX-License-Identifier: Apache-2.0

package eci

// The requests, with the names of ECI, and only the fields that this provider sets. A zero value is not sent; a
// field is a pointer if its zero value counts.

type createRequest struct {
	ClientToken        string
	ContainerGroupName string
	SecurityGroupID    string `json:"SecurityGroupId"`
	VSwitchID          string `json:"VSwitchId"`
	ScheduleStrategy   string
	ResourceGroupID    string  `json:"ResourceGroupId"`
	CPU                float64 `json:"Cpu"`
	Memory             float64
	RestartPolicy      string
	Tag                []tag
	InitContainer      []container
	Container          []container
	Volume             []volume

	ImageRegistryCredential       []registryCredential
	ACRRegistryInfo               []acrRegistry `json:"AcrRegistryInfo"`
	DNSPolicy                     string        `json:"DnsPolicy"`
	DNSConfig                     dnsConfig     `json:"DnsConfig"`
	HostName                      string
	HostAliase                    []hostAlias
	ShareProcessNamespace         bool
	TerminationGracePeriodSeconds *int64
	ActiveDeadlineSeconds         int64
	SecurityContext               groupSecurity
	HostSecurityContext           groupSecurity // for unsafe sysctls
	AutoMatchImageCache           *bool

	// By annotations.
	InstanceType     string
	SpotStrategy     string
	SpotPriceLimit   float64
	ImageSnapshotID  string `json:"ImageSnapshotId"`
	RAMRoleName      string `json:"RamRoleName"`
	EphemeralStorage int64
	DryRun           bool
	AutoCreateEIP    bool  `json:"AutoCreateEip"`
	EIPBandwidth     int64 `json:"EipBandwidth"`
}

type tag struct{ Key, Value string }

type container struct {
	Name, Image, ImagePullPolicy string
	WorkingDir                   string
	Command, Arg                 []string
	CPU                          float64 `json:"Cpu"`
	Memory                       float64
	GPU                          int64 `json:"Gpu"`
	EnvironmentVar               []variable
	EnvironmentVarHide           bool
	VolumeMount                  []mount
	Port                         []port
	LivenessProbe                *probe
	ReadinessProbe               *probe
	SecurityContext              security
	SecurityContextRunAsGroup    *int64
	SecurityContextRunAsNonRoot  bool
	TerminationMessagePath       string

	PostStart hook `json:"LifecyclePostStartHandler"`
	PreStop   hook `json:"LifecyclePreStopHandler"`
}

// hook is a hook of a container. ECI has no dot between its name and its fields.
type hook struct {
	Exec              []string
	HTTPGetHost       string   `json:"HttpGetHost"`
	HTTPGetHTTPHeader []header `json:"HttpGetHttpHeader"`
	HTTPGetPath       string   `json:"HttpGetPath"`
	HTTPGetPort       int64    `json:"HttpGetPort"`
	HTTPGetScheme     string   `json:"HttpGetScheme"`
	TCPSocketHost     string   `json:"TcpSocketHost"`
	TCPSocketPort     int64    `json:"TcpSocketPort"`
}

type variable struct {
	Key      string
	Value    *string
	FieldRef struct{ FieldPath string }
}

type header struct{ Name, Value string }

type mount struct {
	Name, MountPath, SubPath string
	ReadOnly                 bool
}

type port struct {
	Port     int64
	Protocol string
}

type probe struct {
	Exec                struct{ Command []string }
	HTTPGet             httpGet              `json:"HttpGet"`
	TCPSocket           struct{ Port int64 } `json:"TcpSocket"`
	InitialDelaySeconds int64
	PeriodSeconds       int64
	TimeoutSeconds      int64
	SuccessThreshold    int64
	FailureThreshold    int64
}

type httpGet struct {
	Path, Scheme string
	Port         int64
}

type security struct {
	Capability             struct{ Add []string }
	ReadOnlyRootFilesystem bool
	RunAsUser              *int64
}

type groupSecurity struct{ Sysctl []header }

type volume struct {
	Name, Type       string
	ConfigFileVolume configFiles
	EmptyDirVolume   struct{ Medium, SizeLimit string }
	FlexVolume       struct{ Driver, FsType, Options string }
	NFSVolume        struct {
		Server, Path string
		ReadOnly     bool
	}
}

type configFiles struct {
	ConfigFileToPath []configFile
}

type configFile struct {
	Path    string
	Content string // base64
	Mode    string // four octal digits
}

type registryCredential struct{ Server, UserName, Password string }

type acrRegistry struct {
	InstanceID string `json:"InstanceId"`
	RegionID   string `json:"RegionId"`
	Domain     []string
	ArnService string
	ArnUser    string
}

type dnsConfig struct {
	NameServer, Search []string
	Option             []header
}

type hostAlias struct {
	IP       string `json:"Ip"`
	Hostname []string
}

type listRequest struct {
	Tag                []tag
	ContainerGroupIDs  string `json:"ContainerGroupIds"` // JSON
	ContainerGroupName string
	SinceSecond        int64
	Limit              int64
	NextToken          string
}

type logRequest struct {
	ContainerGroupID string `json:"ContainerGroupId"`
	ContainerName    string
	StartTime        string
	Tail             int64
	Timestamps       bool
	LastTime         bool
}

type execRequest struct {
	ContainerGroupID string `json:"ContainerGroupId"`
	ContainerName    string
	Command          string // JSON
	TTY              bool
	Stdin            *bool // its default is true
	Sync             bool
}

// groupRequest is the request of an operation on a group: DeleteContainerGroup and RestartContainerGroup.
type groupRequest struct {
	ContainerGroupID string `json:"ContainerGroupId"`
	ClientToken      string
}

type metricRequest struct {
	ContainerGroupIDs string `json:"ContainerGroupIds"` // JSON
}
