// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"context"
	"io"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Host is the system that started this process for a pod. Each call has a timeout of 10 seconds.
type Host interface {
	// Claim claims the pod for this process. It is the first call. After an error, this process runs no part of the pod, because another process runs
	// it, has run it, or may have run it.
	Claim(ctx context.Context) error
	// Bundle returns the pod with all of its input. It is called again when the pod needs an object, a token or a login. After an error, the pod
	// keeps the previous ones. Bundle must be safe for concurrent use.
	Bundle(ctx context.Context) (Bundle, error)
	// WriteStatus writes the status of the pod to the place where the node reads it.
	WriteStatus(ctx context.Context, s Status) error
	// StopOrder returns the order to stop the pod, or nil if the node has given none.
	StopOrder(ctx context.Context) (*Stop, error)
}

// hostTime bounds a call of the host, because signals wait in the meantime.
const hostTime = 10 * time.Second

// Config configures Run.
type Config struct {
	// Host is the system that started this process. Required.
	Host Host
	// Job and Machine are the names of the job and of its machine, for the status.
	Job, Machine string
	// LogDir has the logs of containers. Required.
	LogDir string
	// Hide is a directory of the machine, hidden from containers. Default: none.
	Hide string
	// Confine removes the capabilities that usual container runtimes do not give. Without it, root in a container is root of the machine. That is for
	// systems that confine the process themselves.
	Confine bool
	// CgroupParent is the parent of the pod's cgroups in the unified hierarchy, which enforce the limits of containers. Default: limits are not
	// enforced.
	CgroupParent string
	// WriteDNS gives containers a /etc/resolv.conf with the DNS settings of their pod. Default: the machine's settings.
	WriteDNS bool
	// Pull pulls images for RuntimeUnpack. Default: PullImage.
	Pull PullFunc
	// KeepVariable reports whether containers get a variable of this process. They always get the variables of
	// GPUs and the user. Default: no others.
	KeepVariable func(name string) bool
	// CDI are the directories with the CDI specifications of the machine. Default: /var/run/cdi and /etc/cdi.
	CDI []string
	// KillGrace is the time that the pod has on the machine after SIGTERM. Default 25s.
	KillGrace time.Duration
	// LookEvery is the interval at which Run asks the host for a stop order. Default 5s.
	LookEvery time.Duration
	// Wake makes this process ask the host for a stop order at once, as SIGUSR1 does. Default: none.
	Wake <-chan struct{}
	// Listener accepts streams in addition to the socket in the status. Every client with access to it can run
	// commands in the pod. Default: none.
	Listener net.Listener
	// Started is called with the first process of each started container, before the process can end. Default: none.
	Started func(container string, pid int)
}

// Bundle is a pod with all of its input.
type Bundle struct {
	Pod *corev1.Pod
	// Containers have resolved environments, except for addresses.
	Containers map[string]*corev1.Container
	ConfigMaps map[string]*corev1.ConfigMap
	Secrets    map[string]*corev1.Secret
	Tokens     map[string]Token
	Node       *corev1.Node
	DNSDomain  string
	// ClusterDNS are the DNS servers of the cluster, if the machine reaches them.
	ClusterDNS []string
	// Runtime is RuntimePodman or RuntimeUnpack for containers of images; "": containers are programs of the machine.
	Runtime string
	// DeviceKind is the kind of the CDI devices that containers request as a resource with this name; "": none.
	DeviceKind string
	// Logins are the pod's logins at registries.
	Logins []Login
}

// These runtimes give containers the files of images.
const (
	RuntimePodman = "podman" // podman of the machine pulls and keeps the images
	RuntimeUnpack = "unpack" // this process pulls them itself
)

// Login is a login at a registry.
type Login struct{ Registry, Username, Password, IdentityToken, RegistryToken string }

// Token is a token of a service account.
type Token struct {
	Token                string
	ExpiresAt, RefreshAt time.Time
}

// Status is the status of a pod as its process reports it.
type Status struct {
	Pod corev1.PodStatus
	// Job is Config.Job, and Host is Config.Machine.
	Job, Host string
	// Socket is the path of this process's socket for streams, on its machine.
	Socket string
	// Ended means that no process of the pod runs any longer.
	Ended bool
	// Stopped means that the order to stop the pod has reached this process.
	Stopped bool
	// Cause is the signal that ended the pod early.
	Cause string
}

// Stop is the order to stop.
type Stop struct {
	GraceSeconds int64
	// Until is the time, by the clock of the node, at which the node ends the job itself.
	Until time.Time
}

// Image is the known data of an image.
type Image struct {
	ID          string   `json:"Id"`
	RepoTags    []string `json:"RepoTags"`
	RepoDigests []string `json:"RepoDigests"`
	Size        int64    `json:"Size"`
	Config      struct {
		User       string   `json:"User"`
		Env        []string `json:"Env"`
		Entrypoint []string `json:"Entrypoint"`
		Cmd        []string `json:"Cmd"`
		WorkingDir string   `json:"WorkingDir"`
	} `json:"Config"`
}

// PullFunc pulls an image. The files come as a tar archive. An error has a gRPC code. Nothing is read if the caller closes the files at once.
type PullFunc func(ctx context.Context, image string, login Login) (of Image, files io.ReadCloser, err error)
