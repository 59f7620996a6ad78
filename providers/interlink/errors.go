// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"unicode"

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

// envelope is what the API server puts around the words of a plugin.
var envelope = regexp.MustCompile(`(?s)^HTTP InterLink session .*?: call exit status: \d+\. Body: `)

// absent is that somebody answered 404: the plugin, or whoever is before it and knows nothing of pods.
func absent(err error) bool {
	var answer *answerError
	return errors.As(err, &answer) && answer.code == http.StatusNotFound
}

// refusal returns an answer other than 200 as an error, with its kind. A 404 has none: it is no proof that a pod is gone.
func refusal(resp *http.Response, session string) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what came is said, whole or not
	inner := envelope.ReplaceAllString(string(data), "")
	e := &answerError{code: resp.StatusCode, session: session, words: words(inner), plugin: inner != "" && len(inner) < len(data)}
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
