// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// maxWords is the maximum length of the text repeated from an answer. The output of a command that submits jobs may be long.
const maxWords = 1024

// answerError is an answer other than 200.
type answerError struct {
	code    int
	session string
	words   string // the message of the plugin, or of another sender
	plugin  bool   // the API server passed on the message of its plugin
}

// Error implements error.
func (e *answerError) Error() string {
	switch {
	case e.plugin:
	case e.code == http.StatusUnauthorized || e.code == http.StatusForbidden || e.code/100 == 3:
		text := fmt.Sprintf("interLink API server, %s: %d: the token or the certificate of this node is not accepted: %s", e.session, e.code, e.words)
		return strings.TrimSuffix(text, ": ")
	case e.words == "":
		return fmt.Sprintf("interLink API server, %s: %d without a word: its log says more, by that name", e.session, e.code)
	}
	return fmt.Sprintf("interLink, %s: %s", e.session, e.words)
}

// envelope matches the text that the API server puts before the message of a plugin. Since 2026 the server
// escapes the whole text as HTML.
var envelope = regexp.MustCompile(`(?s)^(HTTP InterLink session .*?:)?\s*call exit status: \d+\. Body: `)

// noRoute matches the answer of a server for an unknown path: an HTML page, or the message of FastAPI.
var noRoute = regexp.MustCompile(`^<|^\{"detail":"Not Found"\}$`)

// ofPlugin reports whether the error is an answer of the plugin, passed on by the API server.
func ofPlugin(err error) bool {
	var answer *answerError
	return errors.As(err, &answer) && answer.plugin
}

// lacksPod reports whether the answer to a request for one pod means that the plugin does not have this pod. Two answers mean this: a
// 404 of the plugin for a known route, and any 404 that names the pod. The 404 of a proxy proves nothing.
func lacksPod(err error, uid types.UID) bool {
	var answer *answerError
	return errors.As(err, &answer) && answer.code == http.StatusNotFound &&
		(answer.plugin && !noRoute.MatchString(answer.words) || strings.Contains(answer.words, string(uid)))
}

// absent reports whether the answer is a 404. It may come from the plugin, or from a proxy before it that knows
// nothing of pods.
func absent(err error) bool {
	var answer *answerError
	return errors.As(err, &answer) && answer.code == http.StatusNotFound
}

// doubtful reports whether a failed create may have made a job. This is so if no answer came, if the server failed, or if the answer
// reports success in a form outside the protocol.
func doubtful(err error) bool {
	var answer *answerError
	return err != nil && (!errors.As(err, &answer) || answer.code/100 == 2 || answer.code >= http.StatusInternalServerError)
}

// refusal turns an answer other than 200 into an error with its kind. A 404 has no kind, because it does not
// prove that a pod is gone.
func refusal(resp *http.Response, session string) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // the received part is enough for the message
	inner := string(data)
	before := len(envelope.FindString(inner))
	if before > 0 {
		inner = html.UnescapeString(inner[before:])
	}
	e := &answerError{code: resp.StatusCode, session: session, words: words(inner), plugin: before > 0 && inner != ""}
	if resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnprocessableEntity {
		return errdefs.AsInvalidInput(e)
	}
	return e
}

// words makes a message of a plugin readable: one line of printable characters with a bounded length.
func words(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, "?"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxWords {
		s = strings.ToValidUTF8(s[:maxWords], "") + " …"
	}
	return s
}
