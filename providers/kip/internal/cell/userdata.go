// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// UserData is what a machine is told when it starts. Pods may be able to read it, so nothing of it is secret for long.
type UserData struct {
	// Authority has the certificate of the node's authority, in PEM.
	Authority string `json:"authority"`
	// Token names the machine.
	Token string `json:"token"`
	// Secret proves to the node, once, that a key is the machine's.
	Secret []byte `json:"secret,omitempty"`
	// Pod is the UID of the only pod that the machine takes; "" for the first that it is given.
	Pod types.UID `json:"pod,omitempty"`
	// OrphanAfter is how many seconds after it heard from a node for the last time a machine ends that runs no pod.
	OrphanAfter int64 `json:"orphanAfter"`
	// AbandonedAfter is the same for a machine whose pod runs; 0: it runs on.
	AbandonedAfter int64 `json:"abandonedAfter,omitempty"`
}

// DefaultOrphanAfter is how long a machine without a running pod waits for a node.
const DefaultOrphanAfter = 30 * time.Minute

// Marshal returns the user data as the agent reads it.
func (u UserData) Marshal() []byte {
	data, err := json.Marshal(u)
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	return data
}

// ParseUserData reads what Marshal wrote.
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
