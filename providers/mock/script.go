// SPDX-License-Identifier: Apache-2.0

package mock

import "strings"

// word is one word of a command.
type word struct {
	text    string
	literal bool // in single quotes: variables are not expanded
}

// statement is one command of a script.
type statement struct {
	words       []word
	target      string // the output file, if any
	ifSucceeded bool   // runs only if the previous command succeeded (&&)
}

// splitScript splits a script into its commands.
func splitScript(text string) []statement {
	var statements []statement
	var current statement
	var w word
	inWord, toTarget := false, false
	endWord := func() {
		switch {
		case inWord && toTarget:
			current.target, toTarget = w.text, false
		case inWord:
			current.words = append(current.words, w)
		}
		w, inWord = word{}, false
	}
	endStatement := func(ifSucceeded bool) {
		endWord()
		if len(current.words) > 0 || current.target != "" {
			statements = append(statements, current)
		}
		current, toTarget = statement{ifSucceeded: ifSucceeded}, false
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'' || c == '"':
			end := strings.IndexByte(text[i+1:], c)
			if end < 0 {
				end = len(text) - i - 1
			}
			w.text, inWord = w.text+text[i+1:i+1+end], true
			w.literal = w.literal || c == '\''
			i += end + 1
		case c == '\\' && i+1 < len(text):
			i++
			w.text, inWord = w.text+string(text[i]), true
		case c == ';' || c == '\n':
			endStatement(false)
		case c == '&' && strings.HasPrefix(text[i:], "&&"):
			i++
			endStatement(true)
		case c == '>' && !inWord:
			toTarget = true
		case c == ' ' || c == '\t' || c == '\r':
			endWord()
		default:
			w.text, inWord = w.text+string(c), true
		}
	}
	endStatement(false)
	return statements
}
