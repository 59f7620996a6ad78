// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"errors"
	"net/netip"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Port is the port of agents.
const Port = 6421

// State is the state that a machine's agent reports.
type State struct {
	// Version is the version of the agent.
	Version string `json:"version"`
	// Pod is the UID of the machine's pod, or "" if it has none.
	Pod types.UID `json:"pod,omitempty"`
	// Status is the status of the pod. It is nil before the first status.
	Status *podjob.Status `json:"status,omitempty"`
	// Wants are the images that the machine waits for.
	Wants []Want `json:"wants,omitempty"`
	// Interrupted is the reason why the cloud takes the machine away soon, or "".
	Interrupted string `json:"interrupted,omitempty"`
}

// Errors of a Client.
var (
	// ErrTaken means that the machine has another pod, or is reserved for another pod.
	ErrTaken = errors.New("the machine is another pod's")
	// ErrStranger means that another machine answers at the machine's address.
	ErrStranger = errors.New("the answer does not come from the machine that the node started")
	// ErrNoPod means that the machine has no pod yet.
	ErrNoPod = errors.New("the machine has no pod")
)

// Paths of requests. A later version may add paths and fields. Both sides ignore unknown fields.
const (
	pathJoin   = "/v1/join"
	pathSigned = "/v1/signed"
	pathWatch  = "/v1/watch"
	pathPod    = "/v1/pod"
	pathStop   = "/v1/stop"
	pathLogs   = "/v1/logs"
	pathStream = "/v1/stream"
	pathStats  = "/v1/stats"

	pathServices = "/v1/services"
)

// upgradeTo names the protocol of a connection after the request for a stream or a watch.
const upgradeTo = "vk-cell"

// joinRequest asks a machine to prove that its key is its own.
type joinRequest struct {
	Nonce []byte    `json:"nonce"`
	Now   time.Time `json:"now"`
}

// joinAnswer has the proof and the certificate request.
type joinAnswer struct {
	Proof   []byte `json:"proof"`
	Request []byte `json:"request"` // the certificate signing request, in DER
}

// signed has the certificate of a machine.
type signed struct {
	Certificate []byte `json:"certificate"` // in DER
}

// stopOrder orders the stop of the pod.
type stopOrder struct {
	GraceSeconds int64 `json:"graceSeconds"`
}

// refusal has the reason for a refused request.
type refusal struct {
	Message string `json:"message"`
}

// pathImage is the path to which the node sends a wanted image: a line of JSON, and then the files as a tar archive.
const pathImage = "/v1/images/"

// Want is an image that the machine requests from the node, because the machine reaches no registry.
type Want struct {
	ID    string       `json:"id"`
	Image string       `json:"image"`
	Login podjob.Login `json:"login,omitzero"`
}

// imageHead is the first line of an image.
type imageHead struct {
	Image podjob.Image `json:"image,omitzero"`
	Code  codes.Code   `json:"code,omitempty"` // the reason if there is no image
	Error string       `json:"error,omitempty"`
}

// Services are all Services of a cluster, for the network of a machine.
type Services struct {
	Ports []ServicePort `json:"ports"`
}

// ServicePort is a port of a Service.
type ServicePort struct {
	Service  netip.AddrPort  `json:"service"`  // the cluster IP and the port
	Protocol corev1.Protocol `json:"protocol"` // TCP or UDP
	// Endpoints are the addresses of pods. Without one, the machine refuses connections.
	Endpoints []netip.AddrPort `json:"endpoints,omitempty"`
	// Sticky means that all connections of the machine lead to one endpoint, as long as the endpoint exists.
	Sticky bool `json:"sticky,omitempty"`
}
