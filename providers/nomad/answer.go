// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// answerError is an unsuccessful answer.
type answerError struct {
	what    string
	code    int
	text    string
	foreign bool // the answer comes from a proxy, not from Nomad, and says nothing about jobs
}

func (e *answerError) Error() string {
	if e.foreign {
		return fmt.Sprintf("%s: the server at the address of Nomad answers %d, and is not Nomad: %s", e.what, e.code, e.text)
	}
	return fmt.Sprintf("%s: Nomad answers %d: %s", e.what, e.code, e.text)
}

// missing matches Nomad's texts about objects that it lacks. A proxy answers 404 for other reasons, and with
// other texts.
var missing = regexp.MustCompile(`(^|: )((job|variable|alloc|allocation) not found|Unknown allocation ".*"|task ".*" not started yet.*|log entry for task .* not found)$`)

// NotFound reports a 404 of Nomad itself about a missing object.
func (e *answerError) NotFound() bool {
	return e.code == http.StatusNotFound && !e.foreign && missing.MatchString(e.text)
}

// InvalidInput is the kind of a 400.
func (e *answerError) InvalidInput() bool { return e.code == http.StatusBadRequest && !e.foreign }

// forbidden reports whether the token has not the rights.
func (e *answerError) forbidden() bool { return e.code == http.StatusForbidden && !e.foreign }

// refused is an error unless an answer is a success.
func refused(what string, answer *http.Response) error {
	kind := answer.Header.Get("Content-Type")
	html := strings.HasPrefix(kind, "text/html")
	success := answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusNoContent // the latter when a Variable was removed
	if success && !html {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	// Nomad writes errors as text. A 400 without a content type comes from a listener that expects TLS, and has
	// no relation to the request.
	foreign := html || kind == "" && answer.StatusCode == http.StatusBadRequest
	err := error(&answerError{what: what, code: answer.StatusCode, text: said(text), foreign: foreign})
	if wait := after(answer.Header); wait > 0 {
		err = errdefs.RetryAfter(err, wait)
	}
	return err
}

// said returns an error text of Nomad as one line.
func said(text []byte) string {
	if line := strings.Join(strings.Fields(string(text)), " "); line != "" {
		return line
	}
	return "nothing more"
}

func after(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
