// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"bytes"
	"fmt"
	"strings"
)

// ACI runs one program in a container, without arguments, on a terminal, and tells no exit codes. So the program is a shell, which is told the rest
// as if somebody typed it: first a line that any editor of lines leaves as it is, and then lines of octal digits, which no terminal changes.
const (
	shell = "/bin/sh"
	// typed lets the shell read lines until an empty one, and do what they say.
	typed = `o=$(stty -g 2>/dev/null);stty -echo 2>/dev/null;printf '\036vk-%s\n' ready;s=;while IFS= read -r l&&[ -n "$l" ];do s=$s$l;done;eval "$(printf "$s")";exit` + "\n"
	// readyMark, beginMark and exitMark are what the shell prints: it reads lines now, the command begins, and it has ended. No echo of what was
	// typed has them. The exit code follows the last one, and a newline each.
	readyMark, beginMark, exitMark = "\x1evk-ready", "\x1evk-begin", "\x1evk-exit "
	// longestLine is how many bytes a line stands for. A terminal takes lines of 4,095 characters.
	longestLine = 200
)

const (
	begins = `printf '\036vk-begin\n';`
	ends   = `"$@";printf '\036vk-exit %d\n' $?`
	// kept lets a terminal be as it was, and unchanged lets it change nothing of the output.
	kept      = `stty "$o" 2>/dev/null;`
	unchanged = `stty -opost 2>/dev/null;`
	// fed hands the lines that follow to the command, until an empty one.
	fed = `while IFS= read -r l&&[ -n "$l" ];do printf "$l";done|`
)

// script runs a command, and says how it ended.
func script(command []string, tty, input bool) string {
	var text strings.Builder
	text.WriteString("set --")
	for _, word := range command {
		text.WriteString(" " + quote(word))
	}
	text.WriteString(";")
	switch {
	case tty:
		text.WriteString(kept + begins + ends)
	case input:
		text.WriteString(unchanged + begins + fed + "{ " + ends + ";}")
	default:
		text.WriteString(unchanged + begins + "{ " + ends + ";} </dev/null")
	}
	return text.String()
}

// quote makes text one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// octal are lines that printf writes as data.
func octal(data []byte) []byte {
	var lines bytes.Buffer
	for i, b := range data {
		if i > 0 && i%longestLine == 0 {
			lines.WriteByte('\n')
		}
		fmt.Fprintf(&lines, `\%03o`, b)
	}
	if len(data) > 0 {
		lines.WriteByte('\n')
	}
	return lines.Bytes()
}
