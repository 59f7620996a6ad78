// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// place is the directory of pods on the shared file system. Each pod has its own directory, which only the user of the jobs can read.
type place struct {
	root, shared    string
	program, script string
}

// submittedFile has the number of the job, once it is known.
const submittedFile = "submitted"

// prepare writes the program and the script of jobs to the shared file system once. Their names depend on their content.
func (p *place) prepare(program string) error {
	for _, dir := range []string{filepath.Join(p.shared, "bin"), p.root} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("slurm provider: sharedDir: %w", err)
		}
	}
	// A user with write access to one of these directories controls this user's jobs.
	for _, dir := range []string{p.shared, filepath.Join(p.shared, "bin"), filepath.Dir(p.root), p.root} {
		info, err := os.Lstat(dir)
		if err != nil {
			return fmt.Errorf("slurm provider: sharedDir: %w", err)
		}
		if !info.IsDir() || !own(info) || info.Mode().Perm()&0o022 != 0 {
			return fmt.Errorf("slurm provider: sharedDir: %s (%v): want a directory of the user that runs this, which no other may write to", dir, info.Mode())
		}
	}
	if info, err := os.Stat(p.root); err != nil || info.Mode().Perm()&0o077 != 0 {
		return errors.Join(fmt.Errorf("slurm provider: sharedDir: %s is open to others: chmod 0700", p.root), err)
	}
	if program == "" {
		program = "/proc/self/exe"
	}
	var err error
	if p.program, err = keep(program, filepath.Join(p.shared, "bin", "virtual-kubelet-")); err != nil {
		return fmt.Errorf("slurm provider: put the program of jobs into sharedDir: %w", err)
	}
	sum := sha256.Sum256([]byte(script))
	p.script = filepath.Join(p.shared, "bin", "job-"+hex.EncodeToString(sum[:8])+".sh")
	if err := writeNew(p.script, strings.NewReader(script)); err != nil {
		return fmt.Errorf("slurm provider: put the script of jobs into sharedDir: %w", err)
	}
	return nil
}

// keep copies a program to a name with its hash, unless the copy exists.
func keep(from, to string) (string, error) {
	f, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	to += hex.EncodeToString(sum.Sum(nil)[:8])
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	return to, writeNew(to, f)
}

// writeNew writes a program completely or not at all. It does nothing if the file has the right content.
func writeNew(path string, from io.ReadSeeker) error {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && own(info) && info.Mode().Perm() == 0o700 && same(path, from) {
		return nil
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	err = errors.Join(err, f.Chmod(0o700), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// same reports whether a file has the content of from.
func same(path string, from io.ReadSeeker) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	is, want := sha256.New(), sha256.New()
	_, err = io.Copy(is, f)
	_, fromErr := io.Copy(want, from)
	return err == nil && fromErr == nil && bytes.Equal(is.Sum(nil), want.Sum(nil))
}

func (p place) pod(uid types.UID) string { return filepath.Join(p.root, string(uid)) }

// write writes the input of a pod's job. before is true if the directory of the pod existed.
func (p place) write(uid types.UID, b podjob.Bundle) (before bool, err error) {
	dir := p.pod(uid)
	err = os.Mkdir(dir, 0o700)
	if before = errors.Is(err, os.ErrExist); err != nil && !before {
		return before, err
	}
	return before, p.rewrite(uid, b)
}

// rewrite writes the input again. A removed pod stays removed.
func (p place) rewrite(uid types.UID, b podjob.Bundle) error {
	return jsonfile.Write(filepath.Join(p.pod(uid), job.BundleFile), b)
}

func (p place) submitted(uid types.UID, number int) error {
	return os.WriteFile(filepath.Join(p.pod(uid), submittedFile), []byte(strconv.Itoa(number)), 0o600)
}

func (p place) remove(uid types.UID) error { return os.RemoveAll(p.pod(uid)) }

// said returns the status of a pod's job, if its file differs from seen, or if again is set.
// nil means no news; an error means that the status is unknown.
func (p place) said(uid types.UID, seen os.FileInfo, again bool) (*podjob.Status, os.FileInfo, error) {
	path := filepath.Join(p.pod(uid), job.StatusFile)
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, seen, nil
	}
	if err != nil || !again && unchanged(seen, info) {
		return nil, seen, err
	}
	var said podjob.Status
	err = jsonfile.Read(path, &said)
	switch {
	case errors.Is(err, jsonfile.ErrDamaged), errors.Is(err, os.ErrNotExist):
		return nil, seen, nil // a later call reads the file again
	case err != nil:
		return nil, seen, err
	}
	return &said, info, nil
}

// unchanged reports whether the file is the same as before. Its time alone is not enough: the clock's tick is coarse, and a job may
// write twice within a tick. Each write makes a new file.
func unchanged(seen, now os.FileInfo) bool {
	return seen != nil && os.SameFile(seen, now) && now.ModTime().Equal(seen.ModTime()) && now.Size() == seen.Size()
}

// usedFile returns the path of the mark beside a root that has had pods. If the mark is missing, another file system is mounted there,
// or none.
func (p place) usedFile() string {
	return filepath.Join(filepath.Dir(p.root), "."+filepath.Base(p.root)+".used")
}

// used returns an error if the root has no mark.
func (p place) used() error {
	if _, err := os.Lstat(p.usedFile()); err != nil {
		return fmt.Errorf("sharedDir: the directory is not the same as before; check that it is mounted: %w", err)
	}
	return nil
}

// use marks the root as used.
func (p place) use() error {
	if _, err := os.Lstat(p.usedFile()); err == nil {
		return nil
	}
	return os.WriteFile(p.usedFile(), nil, 0o600)
}

// found returns the pods with a submitted job, by their directories, with the number of the job, or 0 if it is
// unknown.
func (p place) found() (map[types.UID]int, error) {
	entries, err := os.ReadDir(p.root)
	if err != nil {
		return nil, err
	}
	all := map[types.UID]int{}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		uid := types.UID(e.Name())
		data, err := os.ReadFile(filepath.Join(p.pod(uid), submittedFile))
		if err == nil {
			all[uid], _ = strconv.Atoi(string(data))
			continue
		}
		if errors.Is(err, os.ErrNotExist) {
			if _, err = os.Stat(filepath.Join(p.pod(uid), job.StatusFile)); err == nil {
				all[uid] = 0
			}
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return all, nil
}

// sweep removes the directories of pods whose submission had no answer and no effect, because they may contain
// secrets. It keeps directories with a job in Slurm, with an earlier job, or with a write after since.
func (p place) sweep(jobs map[types.UID][]queued, since time.Time) error {
	entries, err := os.ReadDir(p.root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		uid := types.UID(e.Name())
		info, err := e.Info()
		if err != nil || !e.IsDir() || len(jobs[uid]) > 0 || info.ModTime().After(since) || p.ran(uid) {
			continue
		}
		if err := p.remove(uid); err != nil {
			return err
		}
	}
	return nil
}

// ran reports whether the pod has, or had, a job according to its files.
func (p place) ran(uid types.UID) bool {
	for _, name := range []string{submittedFile, job.StatusFile, job.ClaimFile} {
		if _, err := os.Lstat(filepath.Join(p.pod(uid), name)); !errors.Is(err, os.ErrNotExist) {
			return true
		}
	}
	return false
}
