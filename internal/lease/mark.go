// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// Mark identifies one run of a node controller in the lease of its node.
type Mark struct {
	// ID is random and different for each run.
	ID string `json:"id"`
	// Host helps people find the process.
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
	// Space is the scope of PID: the boot of the machine, and the PID namespace. Start distinguishes processes with the same PID there. Both are
	// empty if unknown.
	Space string `json:"space,omitempty"`
	Start string `json:"start,omitempty"`
	// Member is the name of the process among the processes with shared nodes, or "".
	Member string `json:"member,omitempty"`
}

// NewMark returns the mark of this run of the process.
func NewMark() Mark {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // rand.Read never fails
	m := Mark{ID: hex.EncodeToString(id), PID: os.Getpid()}
	m.Host, _ = os.Hostname()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return m
	}
	pids, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return m
	}
	if start, lives := processStart(m.PID); lives {
		m.Space, m.Start = strings.TrimSpace(string(boot))+"/"+pids, start
	}
	return m
}

// ParseMark reads a mark. Any other text gives a mark without details.
func ParseMark(text string) Mark {
	var m Mark
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.ID == "" {
		return Mark{ID: text}
	}
	return m
}

// Text returns the mark in the format of the annotation.
func (m Mark) Text() string {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // Strings and a number can always be encoded.
	}
	return string(text)
}

// String returns the name of the process for logs.
func (m Mark) String() string {
	if m.Host == "" {
		return redact.CutTo(m.ID, 80)
	}
	return fmt.Sprintf("process %d on host %s", m.PID, m.Host)
}

// Ended reports whether the process of the other mark has provably ended: it ran where this process runs, and its PID is free or belongs to another
// process. A new PID namespace may have the name of a removed namespace, but then the processes of the removed namespace have ended.
func (m Mark) Ended(other Mark) bool {
	if m.Space == "" || m.Space != other.Space || other.PID <= 0 || other.Start == "" {
		return false
	}
	process, err := os.FindProcess(other.PID)
	if err != nil {
		return false
	}
	defer func() { _ = process.Release() }()
	if errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		return true
	}
	start, lives := processStart(other.PID)
	return !lives || start != "" && start != other.Start
}

// processStart returns the start of a process in ticks since the boot, or "" if it is unknown. A zombie process does not count as alive.
func processStart(pid int) (start string, lives bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", true // the process may be hidden
	}
	// The second field is the name in parentheses, with any characters.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, startTime = 0, 19 // fields 3 and 22 of the whole
	if len(fields) <= startTime {
		return "", true
	}
	if s := string(fields[state]); s == "Z" || s == "X" {
		return "", false
	}
	return string(fields[startTime]), true
}
