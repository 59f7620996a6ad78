// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/entra"
)

// The states of tasks.
const (
	active    = "active"
	preparing = "preparing"
	running   = "running"
	completed = "completed"
)

// Pool is the pool of the account.
type Pool struct {
	ID, VMSize string
	// Slots is the number of slots of each machine.
	Slots int
	// Containers reports whether the pool has a containerConfiguration.
	Containers bool
	// Windows reports whether the machines of the pool have Windows.
	Windows bool
	// SSH reports whether the pool has an inbound NAT pool for port 22 of its machines.
	SSH bool
	// Identity is the resource ID of its user-assigned identity.
	Identity string
	// AutoScale reports whether the pool scales by itself.
	AutoScale bool
	// ResizeErrors are codes of the reasons why the pool is smaller than its target.
	ResizeErrors []string
}

// Server is the service. Set its fields before the first request.
type Server struct {
	*entra.Tokens
	Pool  Pool
	Store *Store
	// Page is the number of tasks on a page of a list; 0 is 1000.
	Page int
	// Lag is the delay until lists contain a new task.
	Lag time.Duration
	// Quota is the maximum number of jobs; 0 is 100.
	Quota int

	run Runner
	ctx context.Context //nolint:containedctx // the life of tasks, not of a request

	mu     sync.Mutex
	denied map[string]bool // guarded by mu; operations denied to the identity
	jobs   []*job          // guarded by mu
	nodes  []*node         // guarded by mu
	logins int             // guarded by mu
	wg     sync.WaitGroup
}

// New returns a server with a number of machines. They run tasks until ctx ends.
func New(ctx context.Context, who entra.Principal, pool Pool, nodes int, run Runner) *Server {
	s := &Server{Tokens: entra.New(who), Pool: pool, run: run, ctx: ctx, denied: map[string]bool{}}
	s.Identities = []string{pool.Identity}
	s.Store = newStore(s.Tokens)
	for range nodes {
		s.AddNode()
	}
	return s
}

// Wait returns when everything has ended, after the end of the context of New.
func (s *Server) Wait() { s.wg.Wait() }

// Created is a requested task.
type Created struct {
	ID, DisplayName, CommandLine string
	RequiredSlots                int
	ResourceFiles                []ResourceFile
	EnvironmentSettings          []struct{ Name, Value string }
	Constraints                  struct {
		MaxTaskRetryCount               int
		RetentionTime, MaxWallClockTime string
	}
	UserIdentity struct {
		AutoUser struct{ Scope, ElevationLevel string }
	}
}

// ResourceFile is a file that a machine takes from a blob.
type ResourceFile struct {
	HTTPURL, FilePath, FileMode string
	IdentityReference           struct{ ResourceID string }
}

// Start is a run of a task on a machine.
type Start struct {
	Pool, Job, Node string
	// HostKey is the public key of the SSH server of the machine.
	HostKey string
	Created
	Files []File
}

// File is a resource file with its content from the blob.
type File struct {
	Path, Mode string
	Data       []byte
}

// Runner runs command lines.
type Runner interface {
	// Run runs a task until it has ended, and returns its exit code, or an error with the code of a failure. Run
	// must kill the task when ctx ends.
	Run(ctx context.Context, s Start) (exit int, err error)
}

// Failure is the error of a task that could not run: a code of failureInfo.
type Failure struct{ Code, Message string }

// Error implements error.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

type job struct {
	id    string
	tasks []*task
}

type task struct {
	Created
	job              *job
	state            string
	created, changed time.Time
	started, ended   time.Time
	requeues         int
	requeued         time.Time
	exit             *int
	failure          *Failure
	node             *node
	kill             context.CancelFunc // of the current run
	run              int                // the number of the run
}

type node struct {
	id, state string
	free      int
	key       ssh.Signer
	users     map[string]nodeUser
	listener  net.Listener // of the SSH server of the node; nil: no request has asked for its address
}

// nodeUser is a user of a machine.
type nodeUser struct {
	key   string // in the format of authorized_keys
	admin bool
}

// newHostKey returns the key of the SSH server of a machine.
func newHostKey() ssh.Signer {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // the machine has no random numbers
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		panic(err) // the key was just generated, and is valid
	}
	return key
}

// hostKey is the key of a machine, as in a file ssh_host_ed25519_key.pub.
func (n *node) hostKey() string { return string(ssh.MarshalAuthorizedKey(n.key.PublicKey())) }

// IDs of jobs and tasks are compared without case.
func (s *Server) job(id string) *job {
	for _, j := range s.jobs {
		if strings.EqualFold(j.id, id) {
			return j
		}
	}
	return nil
}

func (j *job) task(id string) *task {
	for _, t := range j.tasks {
		if strings.EqualFold(t.ID, id) {
			return t
		}
	}
	return nil
}

// show returns a task as the service shows it, with these properties; nil means all.
func (t *task) show(names []string) map[string]any {
	info := map[string]any{"requeueCount": t.requeues, "retryCount": 0}
	for name, at := range map[string]time.Time{"startTime": t.started, "endTime": t.ended, "lastRequeueTime": t.requeued} {
		if !at.IsZero() {
			info[name] = at.UTC()
		}
	}
	if t.exit != nil {
		info["exitCode"] = *t.exit
	}
	if t.state == completed {
		info["result"] = "success"
		if t.failure != nil {
			info["result"] = "failure"
			info["failureInfo"] = map[string]any{"category": "userError", "code": t.failure.Code, "message": t.failure.Message}
		}
	}
	all := map[string]any{
		"id": t.ID, "displayName": t.DisplayName, "commandLine": t.CommandLine, "state": t.state, "creationTime": t.created.UTC(),
		"stateTransitionTime": t.changed.UTC(), "requiredSlots": t.RequiredSlots, "executionInfo": info,
	}
	if t.node != nil {
		all["nodeInfo"] = map[string]any{"nodeId": t.node.id}
	}
	if names != nil {
		for name := range all {
			if !slices.Contains(names, name) {
				delete(all, name)
			}
		}
	}
	return all
}

func (t *task) set(state string) { t.state, t.changed = state, time.Now() }

// schedule starts waiting tasks on machines with free slots. s.mu is held.
func (s *Server) schedule() {
	for _, j := range s.jobs {
		for _, t := range j.tasks {
			if t.state != active {
				continue
			}
			n := slices.IndexFunc(s.nodes, func(n *node) bool {
				return (n.state == "idle" || n.state == "running") && n.free >= t.RequiredSlots
			})
			if n < 0 || s.ctx.Err() != nil {
				continue
			}
			s.begin(t, s.nodes[n])
		}
	}
}

// begin begins a run of a task. s.mu is held.
func (s *Server) begin(t *task, n *node) {
	ctx, cancel := context.WithCancel(s.ctx)
	n.free, n.state = n.free-t.RequiredSlots, "running"
	t.node, t.kill, t.run = n, cancel, t.run+1
	t.set(preparing)
	run := t.run
	s.wg.Go(func() {
		defer cancel()
		exit, err := s.execute(ctx, t, run)
		s.mu.Lock()
		defer s.mu.Unlock()
		n.free += t.RequiredSlots
		if n.free == s.Pool.Slots && n.state == "running" {
			n.state = "idle"
		}
		if t.run == run && t.state != completed && t.node == n {
			s.finish(t, exit, err)
		}
		s.schedule()
	})
}

// execute takes the files of a task, and runs it.
func (s *Server) execute(ctx context.Context, t *task, run int) (int, error) {
	start := Start{Pool: s.Pool.ID, Job: t.job.id, Created: t.Created}
	for _, f := range t.ResourceFiles {
		_, name, found := strings.Cut(f.HTTPURL, ContainerPath+"/")
		b := s.Store.get(name)
		switch {
		case f.IdentityReference.ResourceID == "" || !found:
			return 0, &Failure{"BlobAccessDenied", "Access for one of the specified Azure Blob(s) is denied: " + f.FilePath}
		case b == nil:
			return 0, &Failure{"BlobNotFound", "One of the specified Azure Blob(s) is not found: " + f.FilePath}
		}
		start.Files = append(start.Files, File{f.FilePath, f.FileMode, b.data})
	}
	s.mu.Lock()
	if t.run != run || t.state != preparing {
		s.mu.Unlock()
		return 0, context.Canceled
	}
	start.Node, start.HostKey = t.node.id, t.node.hostKey()
	t.started = time.Now()
	t.set(running)
	s.mu.Unlock()
	return s.run.Run(ctx, start)
}

// finish ends a task. s.mu is held.
func (s *Server) finish(t *task, exit int, err error) {
	t.ended = time.Now()
	var f *Failure
	switch {
	case errors.As(err, &f):
		t.failure = f
	case err != nil:
		t.failure = &Failure{"Unknown", err.Error()}
	default:
		t.exit = &exit
		if exit != 0 {
			t.failure = &Failure{"FailureExitCode", "The task exited with an exit code representing a failure"}
		}
	}
	t.set(completed)
}

// end kills a task. s.mu is held.
func (s *Server) end(t *task, why string) {
	if t.kill != nil {
		t.kill()
	}
	if t.state != completed {
		t.ended, t.failure = time.Now(), &Failure{"TaskEnded", why}
		t.set(completed)
		s.schedule()
	}
}

// AddNode adds a machine to the pool.
func (s *Server) AddNode() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = append(s.nodes, &node{id: "tvmps_" + strings.ToLower(rand.Text()), state: "idle", free: s.Pool.Slots, key: newHostKey(), users: map[string]nodeUser{}})
	s.schedule()
}

// LoseNode removes the machine of a task, with the given state. The tasks of this machine run again on others.
func (s *Server) LoseNode(id, state string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(id)
	if t == nil || t.node == nil {
		return fmt.Errorf("no machine has task %s", id)
	}
	lost := t.node
	lost.state = state
	for _, j := range s.jobs {
		for _, t := range j.tasks {
			if t.node == lost && (t.state == running || t.state == preparing) {
				t.kill()
				t.node, t.started = nil, time.Time{}
				t.requeues, t.requeued = t.requeues+1, time.Now()
				t.set(active)
			}
		}
	}
	s.schedule()
	return nil
}

// Rerun runs a task once more while its current run continues, as if its machine had been unreachable.
func (s *Server) Rerun(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(id)
	if t == nil || t.state != running {
		return fmt.Errorf("task %s does not run", id)
	}
	t.node, t.kill = nil, nil
	t.requeues, t.requeued = t.requeues+1, time.Now()
	t.set(active)
	s.schedule()
	return nil
}

// RemoveTask removes a task, as another user with the right might do, and kills its processes.
func (s *Server) RemoveTask(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(id)
	if t == nil {
		return fmt.Errorf("there is no task %s", id)
	}
	s.end(t, "deleted")
	t.job.tasks = slices.DeleteFunc(t.job.tasks, func(other *task) bool { return other == t })
	return nil
}

func (s *Server) find(id string) *task {
	for _, j := range s.jobs {
		if t := j.task(id); t != nil {
			return t
		}
	}
	return nil
}

// Jobs returns the IDs of all jobs.
func (s *Server) Jobs() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		all = append(all, j.id)
	}
	return all
}

// Tasks returns all tasks.
func (s *Server) Tasks() (all []Created) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		for _, t := range j.tasks {
			all = append(all, t.Created)
		}
	}
	return all
}

// State returns the state of a task and the number of its runs, or "" if there is no such task.
func (s *Server) State(id string) (state string, runs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(id)
	if t == nil {
		return "", 0
	}
	return t.state, t.run
}

func (s *Server) counts() map[string]int {
	out := map[string]int{"total": len(s.nodes)}
	for _, n := range s.nodes {
		out[n.state]++
	}
	return out
}
