// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// UserData configures a machine at its start. Pods may be able to read it, so its secret is valid only for a short time.
type UserData struct {
	// Authority is the certificate of the node's authority, in PEM.
	Authority string `json:"authority"`
	// Token names the machine.
	Token string `json:"token"`
	// Secret proves to the node, once, that a key is the machine's.
	Secret []byte `json:"secret,omitempty"`
	// Pod is the UID of the only pod that the machine takes, or "" to take the first pod.
	Pod types.UID `json:"pod,omitempty"`
	// OrphanAfter is the time in seconds without contact to a node after which a machine without a running pod ends itself.
	OrphanAfter int64 `json:"orphanAfter"`
	// AbandonedAfter is the same time for a machine with a running pod. 0 means that the machine keeps running.
	AbandonedAfter int64 `json:"abandonedAfter,omitempty"`
	// Spot makes the agent watch the metadata service of EC2 for the notice that EC2 takes the machine.
	Spot bool `json:"spot,omitempty"`
}

// DefaultOrphanAfter is the default time that a machine without a running pod waits for a node.
const DefaultOrphanAfter = 30 * time.Minute

// Marshal returns the user data in JSON, for the agent.
func (u UserData) Marshal() []byte {
	data, err := json.Marshal(u)
	if err != nil {
		panic(err) // the fields are strings and numbers
	}
	return data
}

// ParseUserData reads the output of Marshal.
func ParseUserData(data []byte) (u UserData, err error) {
	if err := json.Unmarshal(data, &u); err != nil {
		return u, errdefs.AsInvalidInput(fmt.Errorf("read the user data: %w", err))
	}
	if u.Authority == "" || u.Token == "" {
		return u, errdefs.InvalidInput("read the user data: it has no authority or no token: it is not from a node")
	}
	if u.OrphanAfter <= 0 {
		u.OrphanAfter = int64(DefaultOrphanAfter / time.Second)
	}
	return u, nil
}
