// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
)

// service is what the provider needs of skeleton. An error about a group that is not there is of the kind not-found
// (package errdefs); all other errors mean that nobody knows.
type service interface {
	// Create starts a group. It is repeated after an answer that was lost, so a group that is there under the ID stays as it is.
	Create(ctx context.Context, spec groupSpec) error
	// List returns all groups of the node, in every state. It is complete, or an error.
	List(ctx context.Context, node string) ([]group, error)
	// Stop asks a group to stop, and ends it after the grace period. Of two grace periods the one that ends first counts.
	Stop(ctx context.Context, id string, grace time.Duration) error
	// Remove takes a group out that has ended.
	Remove(ctx context.Context, id string) error
	// Logs returns the lines of the present run of a container, or of the one before. They end with the run.
	Logs(ctx context.Context, id, container string, previous bool) (logs.Source, error)
	// Exec runs a command in a container until it has ended, and returns its exit code.
	Exec(ctx context.Context, id, container string, command []string, s session) (exitCode int, err error)
	// Dial connects with a port of a group.
	Dial(ctx context.Context, id string, port int32) (net.Conn, error)
	// Ping returns nil while the service can start groups.
	Ping(ctx context.Context) error
}

// States of containers. The service may have others.
const (
	stateCreating = "creating"
	stateRunning  = "running"
	stateWaiting  = "waiting" // for its next run
	stateStopped  = "stopped"
)

// group is a group as the service shows it.
type group struct {
	groupSpec
	Created time.Time
	Address string // "": it has none yet
	// Stopping says that Stop was called.
	Stopping   bool
	Containers []container
}

// container is a container of a group.
type container struct {
	Name, Image string
	State       string
	Restarts    int32
	Run         run
	Last        *run // the run before, nil if there was none
}

// run is one run of a container.
type run struct {
	ID                string
	Started, Finished time.Time
	ExitCode          *int32 // nil: nobody knows it
}

// session is who looks at a command.
type session struct {
	Stdin          io.Reader // nil: none
	Stdout, Stderr io.Writer
	Sizes          <-chan api.TermSize // of the terminal, nil: there is none
}

// open connects with the service.
//
// FILL(client): return a client of your service, with the endpoint and the credentials of the configuration, and delete memory.go when
// the contract has another backend.
func open(ctx context.Context, _ Config) (service, error) { return newMemory(ctx), nil }
