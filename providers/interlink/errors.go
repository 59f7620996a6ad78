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

// maxWords bounds what is repeated of an answer: the output of a command that submits jobs may be long.
const maxWords = 1024

// answerError is an answer other than 200.
type answerError struct {
	code    int
	session string
	words   string // of the plugin, or of whoever answered
	plugin  bool   // the API server passes the words of its plugin on
}

// Error implements error.
func (e *answerError) Error() string {
	switch {
	case e.plugin:
		return fmt.Sprintf("interLink, %s: %s", e.session, e.words)
	case e.code == http.StatusUnauthorized || e.code == http.StatusForbidden || e.code/100 == 3:
		return fmt.Sprintf("interLink API server, %s: %d: the token or the certificate of this node is not accepted%s", e.session, e.code, e.tail())
	case e.words == "":
		return fmt.Sprintf("interLink API server, %s: %d without a word: its log says more, by that name", e.session, e.code)
	}
	return fmt.Sprintf("interLink, %s: %s", e.session, e.words)
}

func (e *answerError) tail() string {
	if e.words == "" {
		return ""
	}
	return ": " + e.words
}

// envelope is the text that the API server puts before the words of a plugin. Since 2026 the server escapes the whole as HTML.
var envelope = regexp.MustCompile(`(?s)^(HTTP InterLink session .*?:)?\s*call exit status: \d+\. Body: `)

// noRoute is the text that servers have of a path that they do not serve: a page, and the words of FastAPI.
var noRoute = regexp.MustCompile(`^<|^\{"detail":"Not Found"\}$`)

// ofPlugin reports whether the error is an answer of the plugin, which the API server passed on.
func ofPlugin(err error) bool {
	var answer *answerError
	return errors.As(err, &answer) && answer.plugin
}

// lacksPod reports whether the error, an answer to a question about one pod, says that the plugin does not have this pod: a 404 of the
// plugin that is not of its routes, or any 404 that names the pod. The 404 of a proxy proves nothing.
func lacksPod(err error, uid types.UID) bool {
	var answer *answerError
	return errors.As(err, &answer) && answer.code == http.StatusNotFound &&
		(answer.plugin && !noRoute.MatchString(answer.words) || strings.Contains(answer.words, string(uid)))
}

// absent is that somebody answered 404: the plugin, or whoever is before it and knows nothing of pods.
func absent(err error) bool {
	var answer *answerError
	return errors.As(err, &answer) && answer.code == http.StatusNotFound
}

// doubtful is whether a create that failed may have made a job: nothing answered, a server that has failed, or one that says that all is
// well in another way than the protocol.
func doubtful(err error) bool {
	var answer *answerError
	return err != nil && (!errors.As(err, &answer) || answer.code/100 == 2 || answer.code >= http.StatusInternalServerError)
}

// refusal returns an answer other than 200 as an error, with its kind. A 404 has none: it is no proof that a pod is gone.
func refusal(resp *http.Response, session string) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what came is said, whole or not
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

// words is what a message of a plugin is for people: one line, in printable letters, and not too long.
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
