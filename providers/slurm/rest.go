// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// REST is a slurmrestd that takes the place of the commands sbatch, squeue, scancel and sinfo.
type REST struct {
	// URL is where it listens: https://host, unix:///path, or, on this machine alone, http://127.0.0.1:port. Required.
	URL string `json:"url,omitempty"`
	// Version is that of its interface. Default v0.0.38, of Slurm 22.05.
	Version string `json:"version,omitempty"`
	// User is whose jobs they are. Default: the user that runs this.
	User string `json:"user,omitempty"`
	// Token is what scontrol token gives that user. A file is read again when it changes. Default: none, for a socket whose owner is known.
	Token config.Secret `json:"token,omitzero"`
	// CAFile has the authorities that vouch for an https server. It is read again for each connection. Default: those of this machine.
	CAFile string `json:"caFile,omitempty"`
}

// restVersions are those whose answers are understood.
var restVersions = []string{"v0.0.37", "v0.0.38"}

func (r REST) check(problem func(string, ...any)) {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		problem("rest.url: %v", err)
	case u.Scheme == "unix" && (u.Host != "" || u.Path == ""):
		problem("rest.url: %q: want unix:///path", r.URL)
	case u.Scheme != "unix" && u.Scheme != "http" && u.Scheme != "https" || u.Scheme != "unix" && u.Host == "":
		problem("rest.url: %q: want https://host, http://127.0.0.1:port or unix:///path", r.URL)
	case u.Scheme == "http" && !job.Loopback(u.Hostname()):
		problem("rest.url: %q: by http the token would travel as it is: want https, or an address of this machine, such as http://127.0.0.1:6820", r.URL)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "unix" && strings.Trim(u.Path, "/") != "":
		problem("rest.url: want nothing but the host and the port")
	}
	if v := cmp.Or(r.Version, restVersions[1]); v != restVersions[0] && v != restVersions[1] {
		problem("rest.version: %q: want one of %q", v, restVersions)
	}
	if r.User != "" && !word.MatchString(r.User) {
		problem("rest.user: %q: want the name of a user", r.User)
	}
}

// rest asks slurmrestd. Streams go through commands.
type rest struct {
	client        // its step alone
	base, version string
	user          string
	uid           int // the files of pods are of that number, as are their jobs
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
		transport.Proxy = nil // it would see the token
	}
	if path, ok := strings.CutPrefix(r.base, "unix://"); ok {
		r.base = "http://slurmrestd"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	}
	if c.CAFile != "" {
		transport.Proxy = nil // it would hide the file
		transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			data, err := os.ReadFile(c.CAFile)
			if err != nil {
				return nil, fmt.Errorf("rest.caFile: %w", err)
			}
			host, _, _ := net.SplitHostPort(address)
			t := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), ServerName: host}
			if !t.RootCAs.AppendCertsFromPEM(data) {
				return nil, fmt.Errorf("rest.caFile: %s has no certificate", c.CAFile)
			}
			return (&tls.Dialer{Config: t}).DialContext(ctx, network, address)
		}
	}
	// A redirection may be that of a proxy that asks people to log in: it would take the token along.
	r.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return r
}

// restCalls is how many jobs slurmrestd is asked about at once.
const restCalls = 8

// close lets go of the connections that wait for the next call.
func (r *rest) close() { r.http.CloseIdleConnections() }

// maxAnswer bounds what is read of an answer.
const maxAnswer = 256 << 20

// restAnswer is what each answer has.
type restAnswer struct {
	Meta   *json.RawMessage `json:"meta"` // an answer without one is not of slurmrestd
	Errors []struct {
		Number      int    `json:"error_number"`
		Code        int    `json:"error_code"`
		Error       string `json:"error"`
		Description string `json:"description"`
	} `json:"errors"`
}

// said is what Slurm complains about, and whether that is more than that it could not be asked.
func (a restAnswer) said() (text string, refused bool) {
	var all []string
	for _, e := range a.Errors {
		all = append(all, strings.TrimSpace(cmp.Or(e.Description, e.Error)))
		refused = refused || max(e.Number, e.Code) > 0
	}
	return strings.Join(all, "; "), refused
}

// call asks for what of this version's interface, and reads the answer into out. what names it in errors, as the command does that it stands for.
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

// understand reads an answer. What is not in the words of slurmrestd, such as the page of a proxy, says nothing about any job.
func (r *rest) understand(what string, code int, data []byte, out any) error {
	if code == http.StatusUnauthorized || code == http.StatusForbidden {
		return fmt.Errorf("slurmrestd: %s: it does not take the token of user %s: %d %s", what, r.user, code, http.StatusText(code))
	}
	var said restAnswer
	if err := json.Unmarshal(data, &said); err != nil || said.Meta == nil {
		return fmt.Errorf("slurmrestd: %s: the answer %d is not one of slurmrestd %s", what, code, r.version)
	}
	if out != nil && len(said.Errors) > 0 {
		_ = json.Unmarshal(data, out) // what it says beside its complaint
	}
	text, refused := said.said()
	switch {
	case refused:
		return &refusedError{what, text}
	case text != "" || code != http.StatusOK: // the controller refuses a token without a word of its own
		return fmt.Errorf("slurmrestd: %s: %s (%d): look whether the controller of Slurm runs, and takes the token of user %s", what, cmp.Or(text, "it does not say why"), code, r.user)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("slurmrestd: %s: %w", what, err)
	}
	return nil
}

// without is the error of an answer that has not what was asked for: that says nothing, least of all that there is none.
func (r *rest) without(what, field string) error {
	return fmt.Errorf("slurmrestd: %s: the answer is not one of slurmrestd %s: it has no %s", what, r.version, field)
}

// gone tells whether Slurm says that there is no such job.
func gone(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused) && (strings.Contains(refused.said, "Invalid job id") || strings.Contains(refused.said, "already completing or completed"))
}
