// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// longestCommand is how many bytes a command has in an address: servers of OpenStack take a first line of 8 KiB.
const longestCommand = 7 << 10

// executed is the answer to an exec.
type executed struct {
	Output   string `json:"output"`
	ExitCode *int   `json:"exit_code"`
	ExecID   string `json:"exec_id"`
	ProxyURL string `json:"proxy_url"`
}

// execute asks for a command in a container.
func (c *client) execute(ctx context.Context, uuid string, command []string, terminal bool, answer *executed) error {
	quoted := make([]string, 0, len(command))
	for _, word := range command {
		quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'"'"'`)+"'") // Zun reads it as a shell reads words
	}
	query := url.Values{"command": {strings.Join(quoted, " ")}, "run": {strconv.FormatBool(!terminal)}, "interactive": {strconv.FormatBool(terminal)}}
	if n := len(query.Encode()); n > longestCommand {
		return errdefs.InvalidInputf("the command has %d bytes in the address of a request, and Zun takes %d: put it into a file", n, longestCommand)
	}
	_, err := c.call(ctx, "run a command", http.MethodPost, containers+"/"+uuid+"/execute", query, nil, answer)
	return err
}

// shells remembers which runs of containers have a shell.
type shells struct {
	mu    sync.Mutex
	known map[string]bool // guarded by mu
}

// mostShells bounds what is remembered.
const mostShells = 1000

// has lets a container run a shell. A run that has one is not asked again.
func (s *shells) has(ctx context.Context, c *client, uuid, run string) (bool, error) {
	s.mu.Lock()
	has := s.known[run]
	s.mu.Unlock()
	if has {
		return true, nil
	}
	mark := rand.Text()
	var answer executed
	if err := c.execute(ctx, uuid, []string{"sh", "-c", "echo " + mark}, false, &answer); err != nil {
		return false, err
	}
	if !strings.Contains(answer.Output, mark) {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= mostShells {
		s.known = map[string]bool{}
	}
	s.known[run] = true
	return true, nil
}
