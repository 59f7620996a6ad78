// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Said is an allowed use of an old word.
type Said struct {
	// File has the word, in the spelling of the table.
	File, Word string
	// Why is the reason why it is allowed there.
	Why string
}

// old is a forbidden word, and its replacement.
type old struct {
	word, say string
	begin     string // the beginning of the word, so that most files need no pattern
	pattern   *regexp.Regexp
}

// glossaryRow is a row of the table | Say | Not |.
var glossaryRow = regexp.MustCompile(`^\| ([^|]+) \| ([^|]+) \|$`)

// Words checks that nothing in the repository, in text or in names, has a word of the column Not of the table in
// the glossary. A word is found in any case, in the plural, as a part of a name, and across the end of a line of a
// comment.
func (t *Tree) Words(ctx context.Context, glossary string, but []Said) (breaches []string, err error) {
	table, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(glossary)))
	if err != nil {
		return nil, fmt.Errorf("read the glossary: %w", err)
	}
	words := oldWords(string(table))
	if len(words) == 0 {
		return []string{glossary + ": has no table | Say | Not |: nothing was checked"}, nil
	}
	files, err := t.committedFiles(ctx)
	if err != nil {
		return nil, err
	}
	used := map[Said]bool{}
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		if name == glossary || isBinary(name, data) {
			continue
		}
		lower := strings.ToLower(name + "\n" + string(data))
		for _, w := range words {
			if !strings.Contains(lower, w.begin) {
				continue
			}
			if i := slices.IndexFunc(but, func(s Said) bool { return s.File == name && s.Word == w.word }); i >= 0 {
				used[but[i]] = used[but[i]] || w.placesIn(name, data) != nil
				continue
			}
			breaches = append(breaches, w.placesIn(name, data)...)
		}
	}
	for _, s := range but {
		if !used[s] {
			breaches = append(breaches, fmt.Sprintf("%s: %q may stand there and does not: take it off the list", s.File, s.Word))
		}
	}
	return breaches, nil
}

// oldWords reads the table of the glossary.
func oldWords(text string) (words []old) {
	_, table, _ := strings.Cut(text, "\n| Say | Not |\n")
	for line := range strings.Lines(table) {
		row := glossaryRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil || strings.HasPrefix(row[1], "---") {
			continue
		}
		for word := range strings.SplitSeq(row[2], ",") {
			word = strings.TrimSpace(word)
			begin, _, _ := strings.Cut(word, " ")
			words = append(words, old{word, row[1], begin, wordPattern(word)})
		}
	}
	return words
}

// between matches the text between the parts of a word: a space, or the end of a line of text or of a comment.
const between = `(?:[ \t_-]+|[ \t]*\r?\n[ \t]*(?:(?://|#|\*|>)[ \t]*)?)`

// wordPattern matches a word as text has it, "old words" and "Old word", and as names do: oldWords, old_words,
// OLD_WORDS.
func wordPattern(word string) *regexp.Regexp {
	var lower, camel []string
	for part := range strings.FieldsSeq(word) {
		lower = append(lower, part)
		camel = append(camel, strings.ToUpper(part[:1])+part[1:])
	}
	plural := "(?:e?s|ed|ing)?"
	return regexp.MustCompile(`(?i:\b|_)(?i:` + strings.Join(lower, between) + plural + `)(?:\b|_)|` + // text, and names with _
		`(?:\b|_)` + lower[0] + strings.Join(camel[1:], "") + plural + `(?:\b|_|[A-Z0-9])|` + // oldWord, oldWordOf
		`(?:\b|_|[a-z0-9])` + strings.Join(camel, "") + plural + `(?:\b|_|[A-Z0-9])`) // OldWord, theOldWord
}

// placesIn returns the places of the word in a file.
func (w old) placesIn(name string, data []byte) (breaches []string) {
	if w.pattern.MatchString(path.Base(name)) {
		breaches = append(breaches, fmt.Sprintf("%s: its name has %q: say %q", name, w.word, w.say))
	}
	for _, at := range w.pattern.FindAllIndex(data, -1) {
		line := 1 + bytes.Count(data[:at[0]], []byte("\n"))
		breaches = append(breaches, fmt.Sprintf("%s:%d: %q: say %q", name, line, w.word, w.say))
	}
	return breaches
}

// isBinary reports whether a file is not text for readers: a program, a picture, or checksums of modules.
func isBinary(name string, data []byte) bool {
	return path.Base(name) == "go.sum" || bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0
}
