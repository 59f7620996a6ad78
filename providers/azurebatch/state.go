// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/batch/azbatch"
	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/pack"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/podblobs"
)

// pace is the timing of the driver.
type pace struct {
	busy, rest, list time.Duration // intervals of lists
	look             time.Duration // interval of a task's checks of its bundle and its logs
	sweep            time.Duration // interval of removals of blobs
	pool             time.Duration // interval of reads of the pool
	seen             time.Duration // see service.Config.SeenWithin
}

// usual is the pace with 12 lists of statuses and 2 lists of tasks a minute at rest.
var usual = pace{busy: 2 * time.Second, rest: 5 * time.Second, list: 30 * time.Second, look: 3 * time.Second, sweep: time.Minute, pool: 5 * time.Minute}

// driver implements service.Driver for Azure Batch.
type driver struct {
	pack.Streams[instance]

	config Config
	in     cli.ProviderInput
	owner  identity.Owner
	client *client
	pods   *podblobs.Pods
	job    string // the job of this node, and the prefix of its blobs
	at     pace
	kit    *service.Provider[instance]
	key    func() (ssh.Signer, error) // see newKey

	mu       sync.Mutex
	machines *machines               // guarded by mu; the last known machines
	waits    string                  // guarded by mu; why tasks wait
	asked    time.Time               // guarded by mu; when waits was determined
	tasks    map[types.UID]taskState // guarded by mu; from the last list
	lost     map[types.UID]string    // guarded by mu; the reason, for pods whose task runs again
	stopping map[types.UID]time.Time // guarded by mu; the deadline for the removal of a pod's task
	logins   map[string]login        // guarded by mu; keyed by the IDs of machines
}

// taskState is a task of a pod of this node.
type taskState struct {
	azbatch.Task
	pod identity.Pod
}

// login is the user of this process on one machine.
type login struct {
	address string
	until   time.Time
}

// machines describes the machines of the pool.
type machines struct {
	pool, vmSize string
	each         size
	slotsEach    int64
	gpus         GPUs
	most         int64 // maximum number of machines
	seen         time.Time
	resizing     string // why the pool is smaller than its target
}
