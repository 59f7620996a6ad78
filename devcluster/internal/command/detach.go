// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/state"
)

// detach starts this program again in a session of its own, where no terminal can reach it, and
// shows its progress until it is ready.
func detach(ctx context.Context, out io.Writer, o *upOptions) error {
	began := time.Now()
	dir, err := o.dir()
	if err != nil {
		return err
	}
	if pid, err := dir.Holder(); err != nil {
		return err
	} else if pid != 0 {
		return o.alreadyRunning(dir)
	}
	child, progress, err := startChild(dir)
	if err != nil {
		return err
	}
	defer progress.Close()

	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// The child stops cleanly and closes the pipe, which ends the loop below.
	context.AfterFunc(ctx, func() { _ = child.Process.Signal(syscall.SIGTERM) })

	ready, failure := follow(progress, func(text string) { printStep(out, began, text) })
	if !ready {
		// Its exit code adds nothing to its written line, or to its log.
		_ = child.Wait()
		if failure == "" {
			failure = "the process ended before the cluster was ready"
		}
		return fmt.Errorf("start cluster %s: %s (log: %s)", o.name, failure, dir.Log())
	}
	printStep(out, began, fmt.Sprintf("ready (pid %d)", child.Process.Pid))
	printNext(out, o.target, dir)
	fmt.Fprintf(out, "Log: %s\nStop it with: devcluster down%s\n", dir.Log(), o.flags())
	return child.Process.Release()
}

// follow reads progress lines until ready, an error or the end of the pipe.
func follow(progress io.Reader, step func(string)) (ready bool, failure string) {
	lines := bufio.NewScanner(progress)
	for lines.Scan() {
		word, text, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case stepWord:
			step(text)
		case readyWord:
			return true, ""
		case errorWord:
			failure = text
		}
	}
	return false, failure
}

func startChild(dir state.Dir) (child *exec.Cmd, progress *os.File, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	if err := os.MkdirAll(dir.Path(), 0o700); err != nil {
		return nil, nil, fmt.Errorf("make directory of cluster %s: %w", dir.Name, err)
	}
	log, err := os.OpenFile(dir.Log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	progress, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	defer theirs.Close() // otherwise the pipe would stay open after the end of the child

	// The same arguments; of a repeated flag, the later value counts.
	args := append(os.Args[1:len(os.Args):len(os.Args)], "--detach=false", "--progress-fd=3")
	child = exec.Command(program, args...) //nolint:noctx // the process outlives this command
	child.Stdout, child.Stderr = log, log
	child.ExtraFiles = []*os.File{theirs}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start %s: %w", program, err), progress.Close())
	}
	return child, progress, nil
}
