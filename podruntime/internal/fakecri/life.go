// SPDX-License-Identifier: Apache-2.0

package fakecri

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Life is the behaviour of a started container. The zero Life runs until the container is stopped, and then ends
// at once with exit code 143.
type Life struct {
	// Ends means that the container ends by itself, after For, with Code.
	Ends bool
	For  time.Duration
	Code int32
	// Reason is the reason of the end. Default: Completed or Error, depending on the code.
	Reason string
	// Output are the container's lines at its start; Errors are lines of its standard error.
	Output, Errors []string
	// IgnoresStop means that only a kill ends the container.
	IgnoresStop bool
	// Stops is the time that the container takes to stop, and StopCode its exit code. 0 means 143, and CleanStop means exit code 0.
	Stops     time.Duration
	StopCode  int32
	CleanStop bool
	// StartError is the error of StartContainer, if any. The container then fails.
	StartError error
}

// Forever returns a Life that runs until the container is stopped.
func Forever() Life { return Life{} }

// Exit returns a Life that ends at once.
func Exit(code int32) Life { return Life{Ends: true, Code: code} }

// ExitAfter returns a Life that ends by itself after the time d.
func ExitAfter(d time.Duration, code int32) Life { return Life{Ends: true, For: d, Code: code} }

// OOM returns a Life that runs out of memory after the time d.
func OOM(d time.Duration) Life { return Life{Ends: true, For: d, Code: 137, Reason: "OOMKilled"} }

// Match selects the containers of a script.
type Match func(config *runtimeapi.ContainerConfig, pod *runtimeapi.PodSandboxConfig) bool

// ByName matches the containers with a name, in all pods.
func ByName(name string) Match {
	return func(c *runtimeapi.ContainerConfig, _ *runtimeapi.PodSandboxConfig) bool {
		return c.GetMetadata().GetName() == name
	}
}

// ByPod matches the containers with a name in the pods with a name.
func ByPod(pod, name string) Match {
	return func(c *runtimeapi.ContainerConfig, p *runtimeapi.PodSandboxConfig) bool {
		return c.GetMetadata().GetName() == name && p.GetMetadata().GetName() == pod
	}
}

// ByImage matches the containers of an image, by the name in the pod or by identifier.
func ByImage(image string) Match {
	return func(c *runtimeapi.ContainerConfig, _ *runtimeapi.PodSandboxConfig) bool {
		spec := c.GetImage()
		return normalizeName(spec.GetImage()) == normalizeName(image) || spec.GetUserSpecifiedImage() == image || spec.GetImage() == imageID(normalizeName(image))
	}
}

// ByCommand matches the containers whose command and arguments begin with these words.
func ByCommand(words ...string) Match {
	return func(c *runtimeapi.ContainerConfig, _ *runtimeapi.PodSandboxConfig) bool {
		all := append(append([]string{}, c.GetCommand()...), c.GetArgs()...)
		return len(all) >= len(words) && strings.Join(all[:len(words)], "\x00") == strings.Join(words, "\x00")
	}
}

type script struct {
	match Match
	lives []Life
	next  int
}

// Script sets the lives of the matching containers, in the order of their starts. The last life also applies to all later starts. If several scripts
// match, the latest one applies.
func (r *Runtime) Script(match Match, lives ...Life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scripts = append(r.scripts, &script{match: match, lives: lives})
}

// lifeOf returns the life of the next start of a container. The caller holds r.mu.
func (r *Runtime) lifeOf(c *container) Life {
	for i := len(r.scripts) - 1; i >= 0; i-- {
		s := r.scripts[i]
		if len(s.lives) == 0 || !s.match(c.config, c.sandbox.config) {
			continue
		}
		life := s.lives[min(s.next, len(s.lives)-1)]
		s.next++
		return life
	}
	return Life{}
}

// exit describes the end of a container.
type exit struct {
	code            int32
	reason, message string
}

var killed = exit{code: 137}

// endContainer ends a running container. The caller holds r.mu.
func (r *Runtime) endContainer(c *container, e exit) {
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return
	}
	r.finishContainer(c, e)
	r.sendEvent(c.sandbox, c.id, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
}

func (r *Runtime) finishContainer(c *container, e exit) {
	switch {
	case e.reason != "":
	case e.code == 0:
		e.reason = "Completed"
	default:
		e.reason = "Error"
	}
	for _, timer := range c.timers {
		timer.Stop()
	}
	c.timers = nil
	c.state, c.finished, c.exit = runtimeapi.ContainerState_CONTAINER_EXITED, nowNanos(), e
	if c.log != nil {
		_ = c.log.Close()
		c.log = nil
	}
	close(c.done)
}

// beginLife starts the life of a container. The caller holds r.mu.
func (r *Runtime) beginLife(c *container) {
	r.writeLog(c, "stdout", c.life.Output...)
	r.writeLog(c, "stderr", c.life.Errors...)
	if c.life.Ends {
		r.endIn(c, c.life.For, exit{code: c.life.Code, reason: c.life.Reason})
	}
}

// endIn ends a container after a time, unless it ends earlier.
func (r *Runtime) endIn(c *container, d time.Duration, e exit) {
	if d <= 0 {
		r.endContainer(c, e)
		return
	}
	c.timers = append(c.timers, time.AfterFunc(d, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.endContainer(c, e)
	}))
}

// openLog opens the log of a container like a runtime: the directory must exist.
func (c *container) openLog() error {
	if c.config.GetLogPath() == "" || c.sandboxConfig.GetLogDirectory() == "" {
		return nil
	}
	file, err := os.OpenFile(c.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("failed to create container loggers: %w", err)
	}
	if c.log != nil {
		_ = c.log.Close()
	}
	c.log = file
	return nil
}

func (c *container) logPath() string {
	if c.config.GetLogPath() == "" || c.sandboxConfig.GetLogDirectory() == "" {
		return ""
	}
	return filepath.Join(c.sandboxConfig.GetLogDirectory(), c.config.GetLogPath())
}

// writeLog adds lines to the log of a container. The caller holds r.mu.
func (r *Runtime) writeLog(c *container, stream string, lines ...string) {
	if c.log == nil {
		return
	}
	for _, line := range lines {
		_, _ = fmt.Fprintf(c.log, "%s %s F %s\n", time.Now().Format(time.RFC3339Nano), stream, line)
	}
}
