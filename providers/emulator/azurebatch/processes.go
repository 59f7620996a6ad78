// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Processes is a Runner with directories of this machine as its machines. Set its fields before the first task.
type Processes struct {
	// Dir has a directory for each machine.
	Dir string
	// Large has the large files of machines, so that another server of the same process need not write them
	// again. Default: Dir.
	Large string
	// Env is the environment of the machines.
	Env []string
	// Gentle is the time between SIGTERM and the kill of a task. Whether Batch sends SIGTERM first is not
	// published.
	Gentle time.Duration

	mu   sync.Mutex
	runs int            // guarded by mu
	pids map[string]int // guarded by mu; of running tasks, by their IDs
}

// Run implements Runner.
func (p *Processes) Run(ctx context.Context, s Start) (int, error) {
	p.mu.Lock()
	p.runs++
	root := filepath.Join(p.Dir, s.Node)
	dir := filepath.Join(root, "workitems", s.Job, "job-"+strconv.Itoa(p.runs), s.ID)
	p.mu.Unlock()
	wd := filepath.Join(dir, "wd")
	if err := os.MkdirAll(wd, 0o750); err != nil {
		return 0, &Failure{"ResourceDirectoryCreateFailed", err.Error()}
	}
	defer os.RemoveAll(dir)
	for _, f := range s.Files {
		if err := p.place(f, filepath.Join(wd, f.Path)); err != nil {
			return 0, &Failure{"ResourceFileWriteFailed", err.Error()}
		}
	}
	output, err := os.Create(filepath.Join(dir, "stdout.txt"))
	if err != nil {
		return 0, err
	}
	defer output.Close()
	words := strings.Fields(s.CommandLine)                         // the command runs without a shell
	cmd := exec.Command(filepath.Join(wd, words[0]), words[1:]...) //nolint:gosec,noctx // tasks run commands, and kill may stop them gently
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err := os.Stat("/etc/ssh"); err == nil && os.Geteuid() == 0 {
		etc := filepath.Join(root, "etc", "ssh")
		if err := errors.Join(os.MkdirAll(etc, 0o750), os.WriteFile(filepath.Join(etc, "ssh_host_ed25519_key.pub"), []byte(s.HostKey), 0o600)); err != nil {
			return 0, &Failure{"ResourceDirectoryCreateFailed", err.Error()}
		}
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `mount --bind "$0" /etc/ssh && exec "$@"`, etc, cmd.Path}, words[1:]...)
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS // each machine has its own
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = wd, output, output
	cmd.Env = append([]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "AZ_BATCH_POOL_ID=" + s.Pool, "AZ_BATCH_JOB_ID=" + s.Job, "AZ_BATCH_TASK_ID=" + s.ID,
		"AZ_BATCH_NODE_ID=" + s.Node, "AZ_BATCH_NODE_ROOT_DIR=" + root, "AZ_BATCH_TASK_DIR=" + dir, "AZ_BATCH_TASK_WORKING_DIR=" + wd,
	}, p.Env...)
	for _, e := range s.EnvironmentSettings {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	if err := cmd.Start(); err != nil {
		return 0, &Failure{"CommandProgramNotFound", err.Error()}
	}
	p.note(s.ID, cmd.Process.Pid)
	defer p.note(s.ID, 0)
	ended := make(chan struct{})
	defer close(ended)
	stop := context.AfterFunc(ctx, func() { p.kill(cmd.Process.Pid, ended) })
	defer stop()
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	case err != nil:
		return 0, err
	}
	return 0, nil
}

// Command implements Shell.
func (p *Processes) Command(node, text string, admin bool) *exec.Cmd {
	bin := filepath.Join(p.Dir, node, "bin")
	cmd := exec.Command("/bin/sh", "-c", text)                                                                                  //nolint:gosec,noctx // a shell runs commands, and ends with its input
	if err := errors.Join(os.MkdirAll(bin, 0o750), os.WriteFile(filepath.Join(bin, "sudo"), []byte(sudo), 0o700)); err != nil { //nolint:gosec // a program must be executable
		cmd.Err = err
	}
	cmd.Env = shellEnv(bin, admin)
	return cmd
}

func (p *Processes) kill(pid int, ended <-chan struct{}) {
	if p.Gentle > 0 {
		_ = syscall.Kill(-pid, syscall.SIGTERM) // the process may have ended
		select {
		case <-ended:
			return
		case <-time.After(p.Gentle):
		}
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}

func (p *Processes) note(id string, pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pids == nil {
		p.pids = map[string]int{}
	}
	if p.pids[id] = pid; pid == 0 {
		delete(p.pids, id)
	}
}

// PID returns the process ID of a task, or 0 if the task does not run.
func (p *Processes) PID(id string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pids[id]
}

// large is held during the write of a large file, because several servers of a process share such files.
var large sync.Mutex

// place writes a resource file. It keeps a large file, so that the tasks of a machine share it.
func (p *Processes) place(f File, path string) error {
	mode := os.FileMode(0o770)
	if f.Mode != "" {
		n, err := strconv.ParseUint(f.Mode, 8, 9)
		if err != nil {
			return err
		}
		mode = os.FileMode(n)
	}
	if len(f.Data) < 1<<20 {
		return os.WriteFile(path, f.Data, mode)
	}
	large.Lock()
	defer large.Unlock()
	kept := filepath.Join(cmp.Or(p.Large, p.Dir), fmt.Sprintf("%p", &f.Data[0])) // blobs are never changed
	if _, err := os.Stat(kept); err != nil {
		// A process that starts during the write would inherit the file open for writing, and then the file
		// could not be executed.
		syscall.ForkLock.RLock()
		err := os.WriteFile(kept+".new", f.Data, mode)
		syscall.ForkLock.RUnlock()
		if err := errors.Join(err, os.Chmod(kept+".new", mode), os.Rename(kept+".new", kept)); err != nil {
			return err
		}
	}
	return os.Link(kept, path)
}
