// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Port is where agents listen.
const Port = 6421

// State is how a machine is, by its agent.
type State struct {
	// Version is that of the agent.
	Version string `json:"version"`
	// Pod is the UID of the pod that the machine was given; "" for none.
	Pod types.UID `json:"pod,omitempty"`
	// Status is how the pod is; nil before its first status.
	Status *podjob.Status `json:"status,omitempty"`
	// Wants are the images that the machine waits for.
	Wants []Want `json:"wants,omitempty"`
	// Interrupted says why the cloud takes the machine away soon; "" if it does not.
	Interrupted string `json:"interrupted,omitempty"`
}

// Errors of a Client.
var (
	// ErrTaken is that the machine has another pod, or is for another one.
	ErrTaken = errors.New("the machine is another pod's")
	// ErrStranger is that what answers at the address of a machine is not this machine.
	ErrStranger = errors.New("the answer does not come from the machine that the node started")
	// ErrNoPod is that the machine has no pod yet.
	ErrNoPod = errors.New("the machine has no pod")
)

// Paths of requests. A later version adds to them, and to what they carry; neither side minds what it does not know.
const (
	pathJoin   = "/v1/join"
	pathSigned = "/v1/signed"
	pathWatch  = "/v1/watch"
	pathPod    = "/v1/pod"
	pathStop   = "/v1/stop"
	pathLogs   = "/v1/logs"
	pathStream = "/v1/stream"
	pathStats  = "/v1/stats"
)

// upgradeTo names what a connection is after the request for a stream or a watch.
const upgradeTo = "vk-cell"

// joinRequest asks a machine to prove that its key is its own.
type joinRequest struct {
	Nonce []byte    `json:"nonce"`
	Now   time.Time `json:"now"`
}

// joinAnswer has the proof.
type joinAnswer struct {
	Proof   []byte `json:"proof"`
	Request []byte `json:"request"` // the certificate signing request, in DER
}

// signed is the certificate of a machine.
type signed struct {
	Certificate []byte `json:"certificate"` // in DER
}

// stopOrder has the pod stopped.
type stopOrder struct {
	GraceSeconds int64 `json:"graceSeconds"`
}

// refusal is why a request was refused.
type refusal struct {
	Message string `json:"message"`
}

// pathImage is where the node sends an image that the machine wants: a line of JSON, and then the files as an archive of tar.
const pathImage = "/v1/images/"

// Want is an image that the machine wants from the node, as it reaches no registry itself.
type Want struct {
	ID    string       `json:"id"`
	Image string       `json:"image"`
	Login podjob.Login `json:"login,omitzero"`
}

// imageHead is the first line of an image.
type imageHead struct {
	Image podjob.Image `json:"image,omitzero"`
	Code  codes.Code   `json:"code,omitempty"` // why there is none
	Error string       `json:"error,omitempty"`
}
