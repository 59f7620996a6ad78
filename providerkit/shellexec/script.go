// SPDX-License-Identifier: Apache-2.0

package shellexec

import (
	"bytes"
	"fmt"
	"strings"
)

// The parts of the scripts. Lines of the shell for Exec begin with the byte 036 and the mark in m: no process
// list and no echo of typed text contains both.
const (
	// read reads lines into s up to a line with a dot, and runs s. A shell with line editing leaves this text
	// unchanged.
	read = `s=;while IFS= read -r l;do [ "$l" = . ]&&break;s=$s$l;done;eval "$(printf %b "$s")"`
	// tellReady prints that the shell is ready for lines.
	tellReady = `printf '\036%s ready\n' "$m";`
	// tellBegun prints that the command begins.
	tellBegun = `printf '\036%s begun\n' "$m";`
	// makeRaw switches a terminal to raw mode, and prints whether that succeeded.
	makeRaw = `if stty raw -echo 2>/dev/null;then l=raw;else l=cooked;fi;printf '\036%s %s\n' "$m" $l;`
	// tellCode prints the exit code of the command. Both outputs of the command are merged, because the end of a separate output could
	// arrive after this line.
	tellCode = `2>&1;printf '\036%s %d\n' "$m" $?`
	// run has no input. runFed feeds the following lines up to a line with a dot. runTyped has the terminal; its
	// interrupt key is for the command alone.
	run      = `"$@" </dev/null ` + tellCode
	runFed   = `while IFS= read -r l;do [ "$l" = . ]&&break;printf %b "$l";done|{ "$@" ` + tellCode + `;}`
	runTyped = `trap : INT QUIT 2>/dev/null;"$@" ` + tellCode
)

// lastLine is the line that ends the input.
const lastLine = ".\n"

// longestPiece is the maximum number of bytes that a line encodes. A terminal accepts lines of 4,095 bytes.
const longestPiece = 800

// encode writes bytes as lines that printf %b reads: letters and some signs as they are, and the others as three octal digits. Four digits
// with a leading 0, as POSIX has them, are two bytes for the shell mvdan.cc/sh. No digit may follow an escape, and a dot is always escaped,
// because a line with a dot ends the input.
func encode(data []byte) []byte {
	var out bytes.Buffer
	for i, b := range data {
		if i > 0 && i%longestPiece == 0 {
			out.WriteByte('\n')
		}
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || strings.IndexByte(" /-_=,:", b) >= 0 {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, `\%03o`, b)
		}
	}
	if len(data) > 0 {
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// Quote makes text one word of a shell.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'" }

// Line returns a command as one line, for a service that splits it like a shell.
func Line(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = Quote(word)
	}
	return strings.Join(words, " ")
}

// body runs the command in the arguments of the shell.
func (o *Options) body() string {
	switch {
	case o.TTY:
		text := ""
		if o.By == Typing {
			text = `stty "$o" 2>/dev/null;`
		}
		if o.Rows > 0 && o.Columns > 0 {
			text += fmt.Sprintf("stty rows %d cols %d 2>/dev/null;", o.Rows, o.Columns)
		}
		return text + tellBegun + runTyped
	case o.Terminal && o.Input:
		return makeRaw + runFed
	case o.Terminal:
		return makeRaw + run
	case o.Input:
		return tellBegun + runFed
	}
	return tellBegun + run
}

// whole returns a script that sets the command and then runs body.
func (o *Options) whole() []byte {
	var text strings.Builder
	text.WriteString("set --")
	for _, word := range o.Command {
		text.WriteString(" " + Quote(word))
	}
	text.WriteString(";" + o.body())
	return []byte(text.String())
}
