// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// rest implements slurm by slurmrestd. Streams use commands.
type rest struct {
	client        // only for its step
	base, version string
	user          string
	uid           int // the user ID of the jobs and of the files of pods
	token         config.Secret
	http          *http.Client
}

func newREST(c REST, commands client) *rest {
	r := &rest{client: commands, base: strings.TrimSuffix(c.URL, "/"), version: cmp.Or(c.Version, restVersions[1]), user: c.User, uid: os.Geteuid(), token: c.Token}
	if r.user == "" {
		if u, err := user.Current(); err == nil {
			r.user = u.Username
		}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: restCalls, IdleConnTimeout: 90 * time.Second}
	if !strings.HasPrefix(r.base, "https:") {
		transport.Proxy = nil // a proxy would see the token
	}
	if path, ok := strings.CutPrefix(r.base, "unix://"); ok {
		r.base = "http://slurmrestd"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	}
	if c.CAFile != "" {
		transport.Proxy = nil // with a proxy, caFile would have no effect
		transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := config.TLSFiles{CAFile: c.CAFile}.DialTLS(ctx, network, address)
			if err != nil {
				return nil, fmt.Errorf("rest: %w", err)
			}
			return conn, nil
		}
	}
	// Do not follow redirects: a proxy's login page would get the token.
	r.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return r
}

// restCalls is the number of concurrent requests to slurmrestd about jobs.
const restCalls = 8

// close closes idle connections.
func (r *rest) close() { r.http.CloseIdleConnections() }

// maxAnswer bounds an answer.
const maxAnswer = 256 << 20

// restAnswer has the common fields of answers.
type restAnswer struct {
	Meta   *json.RawMessage `json:"meta"` // an answer without meta is not from slurmrestd
	Errors []struct {
		Number      int    `json:"error_number"`
		Code        int    `json:"error_code"`
		Error       string `json:"error"`
		Description string `json:"description"`
	} `json:"errors"`
}

// said returns the errors of Slurm. refused is false if all of them only report that Slurm is unreachable.
func (a restAnswer) said() (text string, refused bool) {
	var all []string
	for _, e := range a.Errors {
		all = append(all, strings.TrimSpace(cmp.Or(e.Description, e.Error)))
		refused = refused || max(e.Number, e.Code) > 0
	}
	return strings.Join(all, "; "), refused
}

// call sends a request to this version's interface, and decodes the answer into out. what is the name of the
// request in errors, like the corresponding command.
func (r *rest) call(ctx context.Context, what, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, r.base+"/slurm/"+r.version+path, body)
	if err != nil {
		return fmt.Errorf("slurmrestd: %s: %w", what, err)
	}
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if token := r.token.Value(ctx); token != "" {
		request.Header.Set("X-SLURM-USER-NAME", r.user)
		request.Header.Set("X-SLURM-USER-TOKEN", token)
	}
	answer, err := r.http.Do(request)
	if err != nil {
		return fmt.Errorf("slurmrestd: %s: %w", what, err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("slurmrestd: %s: the answer breaks off: %w", what, err)
	}
	return r.understand(what, answer.StatusCode, data, out)
}

// understand decodes an answer. An answer that does not come from slurmrestd, such as the page of a proxy, proves nothing about a job.
func (r *rest) understand(what string, code int, data []byte, out any) error {
	if code == http.StatusUnauthorized || code == http.StatusForbidden {
		return fmt.Errorf("slurmrestd: %s: it does not take the token of user %s: %d %s", what, r.user, code, http.StatusText(code))
	}
	var said restAnswer
	if err := json.Unmarshal(data, &said); err != nil || said.Meta == nil {
		return fmt.Errorf("slurmrestd: %s: the answer %d does not come from slurmrestd %s", what, code, r.version)
	}
	var unread error
	if out != nil {
		unread = json.Unmarshal(data, out) // the answer may have data in addition to its error
	}
	text, refused := said.said()
	switch {
	case refused:
		return &refusedError{what, text}
	case text != "" || code != http.StatusOK: // the controller refuses a token without a reason
		return fmt.Errorf("slurmrestd: %s: %s (%d): look whether the controller of Slurm runs, and takes the token of user %s", what, cmp.Or(text, "it does not say why"), code, r.user)
	case unread != nil:
		return fmt.Errorf("slurmrestd: %s: %w", what, unread)
	}
	return nil
}

// without returns the error for an answer that lacks a field. Such an answer does not prove that there is no job.
func (r *rest) without(what, field string) error {
	return fmt.Errorf("slurmrestd: %s: the answer does not come from slurmrestd %s: it has no %s", what, r.version, field)
}

// gone reports whether Slurm says that the job does not exist.
func gone(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused) && (strings.Contains(refused.said, "Invalid job id") || strings.Contains(refused.said, "already completing or completed"))
}
