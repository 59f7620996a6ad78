// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// nomad is an agent of Nomad with pods, and with all of its reports about them.
type nomad struct {
	*proxy
	agent   *process
	dir     string
	told    string // folder for the records of the pods' programs
	address string
	group   string // the control group of the tasks
	ended   chan struct{}
	forget  context.CancelFunc

	mu   sync.Mutex
	jobs map[string]string // guarded by mu; the name of the pod, by the ID of its job
	pods map[string]lived  // guarded by mu; keyed by the ID of the job
}

// nomadEvents are some of the event stream.
type nomadEvents struct {
	Events []struct {
		Payload struct {
			Job *struct {
				ID   string
				Meta map[string]string
			}
			Allocation *struct {
				JobID      string
				TaskStates map[string]struct {
					Events []struct {
						Type string
						Time int64
					}
				}
			}
		}
	}
}

// followEvents begins to follow the event stream. It is the bench's own, and not counted.
func (n *nomad) followEvents(ctx context.Context) error {
	ctx, n.forget = context.WithCancel(ctx)
	answer, err := n.openURL(ctx, "/v1/event/stream?topic=Job&topic=Allocation") //nolint:bodyclose // it is closed where it is read
	if err != nil {
		n.forget()
		return err
	}
	n.ended = make(chan struct{})
	go func() {
		defer close(n.ended)
		defer answer.Body.Close()
		for decoder := json.NewDecoder(answer.Body); ; {
			var some nomadEvents
			if decoder.Decode(&some) != nil {
				return // it ends with Nomad, or when it is no longer needed; waits for times have a timeout
			}
			n.recordEvents(some, time.Now())
		}
	}()
	return nil
}

// recordEvents records the times at which Nomad reported the beginning and end of tasks, and their start times by the
// clock of the client that runs them.
func (n *nomad) recordEvents(some nomadEvents, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range some.Events {
		if j := e.Payload.Job; j != nil && j.Meta["vk_name"] != "" {
			n.jobs[j.ID] = j.Meta["vk_name"]
		}
		a := e.Payload.Allocation
		if a == nil {
			continue
		}
		k := n.pods[a.JobID]
		for _, task := range a.TaskStates {
			for _, event := range task.Events {
				switch {
				case event.Type == "Started" && k.began.IsZero():
					k.began, k.started = now, time.Unix(0, event.Time)
				case event.Type == "Terminated" && k.ended.IsZero():
					k.ended = now
				}
			}
		}
		n.pods[a.JobID] = k
	}
}

func (n *nomad) podLives(context.Context, string) (map[string]lived, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := map[string]lived{}
	for id, k := range n.pods {
		all[n.jobs[id]] = k
	}
	return all, nil
}

// get returns the text of an answer.
func (n *nomad) get(ctx context.Context, path string) (string, error) {
	answer, err := n.openURL(ctx, path)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// stop ends Nomad and its jobs, which are in a namespace that ends with its first process.
func (n *nomad) stop() {
	if n.forget != nil {
		n.forget()
		<-n.ended
	}
	if n.proxy != nil {
		n.proxy.stop()
	}
	_ = n.agent.cmd.Process.Kill() // an error means that it is gone
	<-n.agent.done
	removeGroups(n.group)
}

// removeGroups removes empty control groups with this prefix, in each hierarchy.
func removeGroups(name string) {
	below, _ := filepath.Glob("/sys/fs/cgroup/*/" + name + "*")
	direct, _ := filepath.Glob("/sys/fs/cgroup/" + name + "*")
	for _, root := range append(below, direct...) {
		var all []string
		_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				all = append(all, path)
			}
			return nil
		})
		for _, path := range slices.Backward(all) {
			_ = syscall.Rmdir(path)
		}
	}
}
